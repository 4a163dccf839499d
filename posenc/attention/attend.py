"""One attention, under any scheme and by any kernel, and the input.

Three things are known of each token and never confused: its *index* (where it stands in the sequence; masks and windows
read this alone), its *segment* (its document; 0 is padding) and its *position* (what the scheme computes with).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from posenc.attention import kernels
from posenc.attention.cache import AXES, Cache, extend
from posenc.attention.encode import Layer, encode, finish
from posenc.attention.tokens import Tokens, describe, fold, fold_tokens, ranks
from posenc.attention.validation import array, check_distances, check_positions, per_token, validate
from posenc.core.compose import axes, normal_form, pick
from posenc.core.masks import Mask
from posenc.core.parameters import bound
from posenc.core.shapes import KnownSizes, check_params, plain


def attend(
    scheme: Any,
    params: Any,
    q: Float[Array, "*batch Q H d"],
    k: Float[Array, "*batch K G d"],
    v: Float[Array, "*batch K G d"],
    *,
    x: Float[Array, "*batch Q width"] | None = None,
    key_x: Float[Array, "*batch K width"] | None = None,
    positions: Any = None,
    key_positions: Any = None,
    query_start: Any = None,
    mask: Mask = "causal",
    segments: Any = None,
    key_segments: Any = None,
    kernel: str = "auto",
    cache: Cache | None = None,
) -> Any:
    """Attention under a scheme: softmax(score(q kᵀ · scale)) v, every hook in its place (Vaswani et al., 2017, §3.2).

    `q` is `[..., Q, H, d]`, `k` and `v` are `[..., K, G, d]`, of one floating type; `G` divides `H`. Returns
    `[..., Q, H, d]`; with a `cache`, that and the cache with the new tokens in it. A query that sees nothing receives
    zeros. `params` are what `posenc.init` gives for one layer.

    `x` and `key_x` are the features `[..., L, width]` of queries and keys, for schemes that read them. `positions` is
    `[L]` or `[..., L]`, a tuple of such for a sum, or None: the index counted from where the token's document began;
    `posenc.place` may give drawn distances in their place.
    `segments` likewise are whole numbers: a document's, above 0 and in one piece, and 0 for padding, which nobody sees.
    Padding ends no document and takes a place in it; pass positions where it should take none. The keys' own default
    to the queries' where lengths agree.

    `mask` is "causal", "full" or a `posenc.Window` and compares indices. `query_start` is the index of the first query
    among the keys, 0 unless given: where fewer queries than keys are the last of them, the causal mask needs it. A
    scheme that is undefined between two sequences (its limit "cross") takes different lengths only with it. A `cache`
    is what `posenc.Cache.empty` gives, and q, k, v and `x` are then the new tokens.

    `kernel` says how: "dense" makes all scores of a sequence at once, for any scheme; "tiled" makes them tile by tile,
    in memory that grows with the length and not its square, and refuses schemes that read whole rows or all heads;
    "rows" makes a block of queries at a time, for any scheme. "auto" is dense while scores are few. Through tiles
    there is one gradient and no second one, nor a forward one: ask for "dense" or "rows" there.

    Raises `ValueError` or `TypeError` where arguments do not fit. Inside `jit`, where values are unknown, positions
    that a scheme cannot serve and a cache that is full give NaN.
    """
    q, k, v = (array(name, a) for name, a in zip("qkv", (q, k, v), strict=True))
    t = Tokens(q, k, v, x, key_x, positions, key_positions, segments, key_segments)
    layer, t, start = validate(scheme, params, t, query_start, mask, kernel, cache)
    layer = layer._replace(params=jax.tree.map(jnp.asarray, layer.params))
    lead = q.shape[:-3]
    if 0 in (*lead, q.shape[-3], k.shape[-3]):
        nothing = jnp.zeros((*q.shape[:-1], v.shape[-1]), v.dtype)
        return nothing if cache is None else (nothing, cache)
    t = jax.tree.map(jnp.asarray, t)
    flat, mapped = fold_tokens(t, lead, axes(layer.scheme))
    if cache is None:
        one = lambda t: _full(layer, jnp.asarray(start, jnp.int32), t)  # noqa: E731
        out = jax.vmap(one, (mapped,))(flat) if lead else one(t)
        return out.reshape(*lead, *out.shape[-3:])
    return jax.vmap(lambda t, cache: _step(layer, t, cache), (mapped, AXES), (0, AXES))(flat, cache)


def embed(scheme: Any, params: Any, x: Float[Array, "*batch L width"], *, positions: Any = None, segments: Any = None):
    """The input of the first layer under a scheme that acts on it, mostly x + e(position); x itself under the others.

    `x` is `[..., L, width]` and floating, and so is what is returned. `params` are what `posenc.init` gives, or the
    part that layers share. `positions` and `segments` are as in `posenc.attend`; `positions=None` counts from 0 in each
    document, so decoding must pass the positions of the new tokens. Raises `ValueError` or `TypeError` where arguments
    do not fit. Inside `jit`, where values are unknown, positions that a scheme cannot serve give NaN.
    """
    form = normal_form(scheme)
    if positions is None and form.coordinates:
        raise ValueError("This scheme has coordinates; draw positions with posenc.place and pass them.")
    scheme, x, params = bound(form.scheme), array("x", x), plain(params)
    if x.ndim < 2 or not jnp.issubdtype(x.dtype, jnp.floating):
        raise ValueError(f"x is {x.dtype} of the shape {x.shape}; it is floating numbers, [..., length, width].")
    check_params(scheme, params, KnownSizes(width=x.shape[-1]), shared=True)
    if not scheme.overrides("embed") or not x.size:
        return x
    lead, length, p = x.shape[:-2], x.shape[-2], jax.tree.map(jnp.asarray, pick(params, "layer"))
    check_distances(scheme, positions, True)
    positions = per_token("positions", positions, lead, length, axes(scheme), False)
    segments = per_token("segments", segments, lead, length, 1, True)
    index = jnp.arange(length, dtype=jnp.int32)
    check_positions(scheme, p, Tokens(x[..., None], x, x, positions=positions, segments=segments), 0, False)
    positions, segments = jax.tree.map(jnp.asarray, (positions, segments))

    def one(x, positions, segments):
        at = describe(scheme, index, segments, positions, index + 1, 1)
        return scheme.embed(p, x, at)

    if not lead:
        return one(x, positions, segments)
    pairs = [fold(a, lead, tail) for a, tail in ((x, 2), (positions, ranks(axes(scheme))), (segments, 1))]
    out = jax.vmap(one, [axis for _, axis in pairs])(*(a for a, _ in pairs))
    return out.reshape(*lead, *out.shape[-2:])


def _full(layer: Layer, start: Array, t: Tokens) -> Float[Array, "Q H d"]:
    """One sequence, all at once."""
    form, encoded, info = encode(layer, t, start)
    return finish(layer.scheme, layer.params, kernels.mix(layer.kernel, form, encoded), info)


def _step(layer: Layer, t: Tokens, cache: Cache) -> tuple[Float[Array, "Q H d"], Cache]:
    """One sequence's new tokens, after those in its cache."""
    form, encoded, info, longer = extend(layer, t, cache)
    out = finish(layer.scheme, layer.params, kernels.mix(layer.kernel, form, encoded), info)
    if cache.index is None:
        out = jnp.where(longer.length > cache.segment.shape[0], jnp.nan, out)
    return out, longer
