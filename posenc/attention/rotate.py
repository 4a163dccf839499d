"""Queries and keys turned for a kernel of another library, which then needs to know nothing of positions."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from posenc.attention.attend import over_sequences
from posenc.attention.encode import encode
from posenc.attention.kernels import Form
from posenc.attention.options import Options
from posenc.attention.shares import cuts, shares
from posenc.attention.tokens import Tokens
from posenc.attention.validation import array, validate
from posenc.core.compose import normal_form, parts
from posenc.core.masks import Mask
from posenc.core.scheme import Dims, Scheme
from posenc.core.shapes import label

LOST = {
    "embed": "what it adds to the input",
    "score": "what it does to scores",
    "normalize": "its own weights",
    "value": "the turning of values",
    "value_bias": "what it adds to the weighted values",
    "output": "the turning of outputs",
}
"""The loss in a kernel that gets queries and keys alone, by the hook that it leaves out."""


def rotate(
    scheme: Any,
    params: Any,
    q: Float[Array, "*batch Q H d"],
    k: Float[Array, "*batch K G d"],
    positions: Any = None,
    key_positions: Any = None,
    *,
    x: Float[Array, "*batch Q width"] | None = None,
    key_x: Float[Array, "*batch K width"] | None = None,
    query_start: Any = None,
    mask: Mask = "causal",
    segments: Any = None,
    key_segments: Any = None,
) -> tuple[Float[Array, "*batch Q H e"], Float[Array, "*batch K G e"]]:
    """Queries and keys as a kernel of another library takes them: `jax.nn.dot_product_attention`, splash, cuDNN.

    Attention of these without positions, softmax(q·k / √e) v, is `posenc.attend` of the scheme, where `e` is the width
    of what is returned. A scheme that multiplies q·k by another number has it in the queries. Arguments are those of
    `posenc.attend`; `mask` and `segments` are what the kernel is given too, since some schemes count what a query sees.

    >>> import jax, jax.numpy as jnp, posenc
    >>> rope = posenc.parse("rope")
    >>> q, k, v = jax.random.normal(jax.random.key(0), (3, 2, 16, 4, 8))
    >>> a, b = posenc.rotate(rope, None, q, k)
    >>> out = jax.nn.dot_product_attention(a, b, v, is_causal=True)
    >>> bool(jnp.allclose(out, posenc.attend(rope, None, q, k, v), atol=1e-5))
    True

    Keys come back with as many heads as they have, or as queries have where a scheme turns them for each. Those that
    turn by the length of the text so far (`dynamic_ntk`, `longrope`) are turned anew in each call, from all plain keys.
    Raises `ValueError` for a scheme that acts on more than queries and keys, with what would be lost, for a window and
    for coordinates, and otherwise as `posenc.attend`.
    """
    form = normal_form(scheme)
    if form.window is not None:
        raise ValueError(
            f"window({form.window}) narrows the mask, which the kernel has; give it a window of {form.window} keys, and"
            " rotate by the scheme alone."
        )
    if form.coordinates:
        raise ValueError(
            "This scheme has coordinates; rotate by the scheme alone, at positions that posenc.place drew."
        )
    if hooks := left_out(form.scheme):
        raise ValueError(
            f"{label(form.scheme)} is not all in queries and keys; a kernel of these would lose {LOST[hooks[0]]}: use"
            " posenc.attend."
        )
    q, k = (array(name, a) for name, a in zip("qk", (q, k), strict=True))
    t = Tokens(q, k, k, x, key_x, positions, key_positions, segments, key_segments)
    valid, t, start = validate(scheme, params, t, query_start, Options(mask), "auto", None)
    return over_sequences(_turned, valid, t, start, (t.q, t.k))


def left_out(scheme: Scheme) -> list[str]:
    """The hooks of a scheme that act on anything but queries and keys."""
    small = Dims(width=8, heads=1, head=8, trained=8)
    mixed = {role for s in parts(scheme) for role in s.neighbour_carry(small)}
    return [hook for hook in LOST if scheme.overrides(hook) or hook in mixed]


def _turned(form: Form, t: Tokens, start: Array) -> tuple[Array, Array]:
    """Queries and keys of one sequence."""
    each = [_share(*share, start) for share in shares(form, t)]
    groups = [cut.keys for cut in cuts(form.scheme, form.heads, t.k.shape[-2])]
    return _beside(form.scheme, each, groups, form.heads)


def _share(form: Form, t: Tokens, start: Array) -> tuple[Float[Array, "Q h e"], Float[Array, "K g e"]]:
    """The heads of one scheme, whose factor of q·k is in the queries beside the kernel's own."""
    encoded, _ = encode(form, t, start)
    q, k = encoded.q.swapaxes(0, 1), encoded.k.swapaxes(0, 1)
    ours, theirs = form.weighting.scale, q.shape[-1] ** -0.5
    return q if ours == theirs else (q * (ours / theirs)).astype(q.dtype), k


def _beside(
    scheme: Scheme, each: list[tuple[Array, Array]], groups: list[tuple[int, ...]], heads: int
) -> tuple[Array, Array]:
    """All shares of the heads; key heads that belong to several, or to each query head in one, are repeated."""
    widths = {q.shape[-1] for q, _ in each}
    if len(widths) > 1:
        raise ValueError(
            f"The heads of {label(scheme)} have {' and '.join(map(str, sorted(widths)))} features, and a kernel takes"
            " heads of one width; use posenc.attend."
        )
    heads_of = [k for of in groups for k in of]
    alone = heads_of == sorted(set(heads_of))
    apart = alone and all(k.shape[1] == len(of) for (_, k), of in zip(each, groups, strict=True))
    keys = [k if apart or len(each) == 1 else jnp.repeat(k, q.shape[1] // k.shape[1], 1) for q, k in each]
    return jnp.concatenate([q for q, _ in each], 1), jnp.concatenate(keys, 1)
