"""Multi-head self-attention as a pure function of its weights: what every adapter wraps (Vaswani et al., 2017, §3.2.2).

out = concat over heads of attend(x W_q, x W_k, x W_v) · W_o
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from einops import rearrange
from jax.ad_checkpoint import checkpoint_name
from jaxtyping import Array, Float

from posenc.attention.attend import compiled_axes, compute
from posenc.attention.cache import Cache
from posenc.attention.kernels import Form
from posenc.attention.shares import sizes
from posenc.attention.tokens import Tokens
from posenc.attention.validation import Options, array, check_types, validate
from posenc.core.access import acts_on_input
from posenc.core.compose import normal_form
from posenc.core.masks import Mask
from posenc.core.parameters import complete, join
from posenc.core.scheme import Dims, check_dims

MIXED = "posenc_mixed"
"""The name of what attention gives its last projection, for policies of `jax.checkpoint`."""


class Weights(NamedTuple):
    """The three projections; keys and values share one, keys first."""

    query: Float[Array, "width H*d"]
    key_value: Float[Array, "width 2*G*d"]
    out: Float[Array, "H*d width"]


def draw(scheme: Any, dims: Dims, normal: Callable[[tuple[int, int]], Array]) -> Weights:
    """Normal weights of the variance 1 / fan-in, from `normal(shape)`.

    Where a scheme does not divide by √d (T5), query weights are drawn smaller, so that scores start alike under every
    scheme.
    """
    inner, groups = dims.heads * dims.head, dims.key_heads or dims.heads
    plain = normal_form(scheme).scheme
    start = [cut.scheme.scale(dims.head) for cut, _ in sizes(plain, dims) for _ in range(cut.heads * dims.head)]
    start = start[0] if len(set(start)) == 1 else np.asarray([start], np.float32)
    query = normal((dims.width, inner)) * (dims.head**-0.5 / start * dims.width**-0.5)
    key_value = normal((dims.width, 2 * groups * dims.head)) * dims.width**-0.5
    return Weights(query, key_value, normal((inner, dims.width)) * inner**-0.5)


def check_layer(scheme: Any, dims: Any, embedded: bool, scale: Any, cap: Any, sinks: Any) -> None:
    """Refuse sizes that are not `Dims`, numbers that have no meaning, and a scheme that acts on the input unless the
    caller applied it.

    Otherwise that scheme would do nothing, and the layer would be NoPE without a word.
    """
    check_dims(dims)
    scheme = normal_form(scheme)
    if acts_on_input(scheme) and not embedded:
        raise ValueError(
            "This scheme acts on the input, which attention does not see; call posenc.embed on the input of the "
            "first layer and say so with embedded=True."
        )
    if not isinstance(sinks, bool):
        raise TypeError(f"sinks is of type {type(sinks).__name__}; it is True or False, since the layer learns them.")
    start = np.zeros(dims.heads, np.float32) if sinks else None
    query = jax.ShapeDtypeStruct((1, dims.heads, dims.head), jnp.float32)
    for cut, _ in sizes(scheme.scheme, dims):
        Options(scale=scale, cap=cap, sinks=start).weighting(cut.scheme, query)


def first_sinks(dims: Dims) -> Float[Array, " H"]:
    """The sinks of a layer before training: a key of score 0 beside the others."""
    return jnp.zeros(dims.heads)


def whole_params(scheme: Any, tied: Any, own: Any) -> Any:
    """One layer's parameters: all of them, or what it owns beside those that are `tied`. Groups may be missing."""
    scheme = normal_form(scheme).scheme
    return complete(scheme, own) if tied is None else join(complete(scheme, tied), complete(scheme, own))


def multihead(
    weights: Weights,
    position: Any,
    x: Float[Array, "*batch L width"],
    *,
    scheme: Any,
    dims: Dims,
    positions: Any = None,
    segments: Any = None,
    tied: Any = None,
    cache: Cache | None = None,
    mask: Mask | Literal["dims"] = "dims",
    kernel: str = "auto",
    product: Callable[[Array, Array], Array] = jnp.matmul,
    **weighting: Any,
) -> Any:
    """The mixed tokens `[..., L, width]`, and with a `cache` that cache with the new tokens in it.

    `position` is what `posenc.init` gives for one layer, or, beside `tied`, what the layer owns of it. The mask is that
    of `dims.causal` unless given; other arguments, `weighting` among them (scale, cap, sinks, dropout, dropout_key),
    are `posenc.attend`'s. Arguments are validated here, before they are traced: inside `jit` their values are unknown.
    Raises as `posenc.attend` does.
    """
    x = array("x", x)
    if x.ndim < 2 or x.shape[-1] != dims.width or not jnp.issubdtype(x.dtype, jnp.floating):
        raise ValueError(f"x is {x.dtype} of the shape {x.shape}; it is floating numbers, [..., length, {dims.width}].")
    if isinstance(mask, str) and mask == "dims":
        mask = "causal" if dims.causal else "full"
    options = Options(mask, **weighting)
    params = whole_params(scheme, tied, position)
    made = lambda heads: jax.ShapeDtypeStruct((*x.shape[:-1], heads, dims.head), x.dtype)  # noqa: E731
    key = made(dims.key_heads or dims.heads)
    tokens = Tokens(made(dims.heads), key, key, x, positions=positions, segments=segments)  # type: ignore[arg-type]
    form, t, _ = validate(scheme, params, tokens, None, options, kernel, cache)
    learned, t = (weights, form.params, form.sinks), t._replace(q=None, k=None, v=None, x=None)
    form = form._replace(params=None, sinks=None)
    run = lambda learned, x, t, cache: _multihead(*learned, x, t, cache, form, dims.head, product)  # noqa: E731
    return compiled_axes(run, (learned, x, t, cache), x if cache is None else (x, cache))


@functools.partial(jax.jit, static_argnames=("form", "head", "product"))
def _multihead(
    weights: Weights,
    params: Any,
    sinks: Any,
    x: Array,
    t: Tokens,
    cache: Cache | None,
    form: Form,
    head: int,
    product: Callable[[Array, Array], Array],
) -> Any:
    weights = Weights(*(w.astype(x.dtype) for w in weights))
    made = product(x, weights.query), *jnp.split(product(x, weights.key_value), 2, -1)
    q, k, v = (rearrange(a, "... l (h d) -> ... l h d", d=head) for a in made)
    check_types(q, k, v, cache)  # a product may give another type than that of x
    form, t = form._replace(params=params, sinks=sinks), t._replace(q=q, k=k, v=v, x=x)
    if cache is None:
        return product(merge_heads(compute(form, t, 0, None)), weights.out)
    mixed, cache = compute(form, t, 0, cache)
    return product(merge_heads(mixed), weights.out), cache


def merge_heads(mixed: Float[Array, "*batch L H d"]) -> Float[Array, "*batch L H*d"]:
    """The heads beside each other, under the name `MIXED`."""
    return checkpoint_name(rearrange(mixed, "... l h d -> ... l (h d)"), MIXED)
