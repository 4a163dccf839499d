"""Heads that belong to different schemes: one attention as several, each of some heads, and their outputs side by side.

Every head costs what its own scheme costs, since nothing of another scheme is computed for it.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from posenc.attention.kernels import Form
from posenc.attention.tokens import Tokens
from posenc.core.scheme import Dims, Scheme
from posenc.core.shares import HeadShare, Shares


def shares(form: Form, t: Tokens) -> list[tuple[Form, Tokens]]:
    """Each share of the heads as an attention of its own, of tokens `[..., L, H, d]`; all of it where there is one."""
    if not form.shares:
        return [(form, t)]
    each = cuts(form.scheme, form.heads, t.k.shape[-2])
    return [(_form(form, n, cut), _tokens(t, n, cut)) for n, cut in enumerate(each)]


def cuts(scheme: Scheme, heads: int, groups: int) -> tuple[HeadShare, ...]:
    """Return the heads of each share; one share of all heads if they have one scheme."""
    if isinstance(scheme, Shares):
        return scheme.cuts(heads, groups)
    return (HeadShare(scheme, 0, heads, tuple(range(groups)), slice(None)),)


def sizes(scheme: Scheme, dims: Dims) -> list[tuple[HeadShare, Dims]]:
    """Return the heads of each share, and the sizes of a model of these heads alone."""
    if not isinstance(scheme, Shares):
        return [(cut, dims) for cut in cuts(scheme, dims.heads, dims.key_heads or dims.heads)]
    return [(cut, cut.dims(dims)) for cut in scheme.cuts(dims.heads, dims.key_heads or dims.heads)]


def of_share(scheme: Scheme, cut: HeadShare, each: Any) -> Any:
    """Return the part of a share, from a tuple with an entry for each plain scheme of all shares."""
    return cut.of_parts(each) if isinstance(scheme, Shares) else each


def beside(outputs: list[Float[Array, "Q h d"]]) -> Float[Array, "Q H d"]:
    """The outputs of all shares, the first heads first."""
    return outputs[0] if len(outputs) == 1 else jnp.concatenate(outputs, 1)


def of_heads(a: Array, cut: HeadShare) -> Array:
    """The key heads of a share, of an array `[..., G, d]`."""
    keys = cut.keys
    if keys == tuple(range(keys[0], keys[0] + len(keys))):
        return a[..., keys[0] : keys[-1] + 1, :]
    return a[..., jnp.asarray(keys), :]


def _form(form: Form, n: int, cut: HeadShare) -> Form:
    """The form of a share, with its parameters."""
    layer, heads = (cut.of_parts(group) for group in form.params)
    sinks = None if form.sinks is None else form.sinks[cut.first : cut.stop]
    return form.shares[n]._replace(params=(layer, heads), sinks=sinks)


def _tokens(t: Tokens, n: int, cut: HeadShare) -> Tokens:
    """Return the tokens of a share. It drops weights by a seed of its own, as its heads have numbers of their own."""
    seed = t.pairs.seed
    return t._replace(
        q=t.q[..., cut.first : cut.stop, :],
        k=of_heads(t.k, cut),
        v=of_heads(t.v, cut),
        positions=cut.of_parts(t.positions),
        key_positions=cut.of_parts(t.key_positions),
        pairs=t.pairs._replace(seed=None if seed is None else seed + jnp.uint32(n)),
    )
