"""One attention, under any scheme and by any kernel, and the input.

Three things are known of each token and never confused: its *index* (its place; masks and windows look at this alone),
its *segment* (its document; 0 is padding) and its *position* (what the scheme is told: anything).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from posenc.attention import admission, arguments, kernels, sides
from posenc.attention.arguments import Tokens
from posenc.attention.cache import Cache, free, keep, last, write
from posenc.attention.kernels import Pairs, Side
from posenc.attention.prepared import Layer, known, prepare, silent, sizes
from posenc.core.compose import axes, bare, pick
from posenc.core.masks import Mask
from posenc.core.parameters import bound
from posenc.core.scheme import At
from posenc.core.shapes import Sizes, check_params, plain


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
    q, k, v = (arguments.array(name, a) for name, a in zip("qkv", (q, k, v), strict=True))
    t = Tokens(q, k, v, x, key_x, positions, key_positions, segments, key_segments)
    layer, t, start = prepare(scheme, params, t, query_start, mask, kernel, cache)
    layer = layer._replace(params=jax.tree.map(jnp.asarray, layer.params), heads=jax.tree.map(jnp.asarray, layer.heads))
    lead = q.shape[:-3]
    if 0 in (*lead, q.shape[-3], k.shape[-3]):
        nothing = jnp.zeros((*q.shape[:-1], v.shape[-1]), v.dtype)
        return nothing if cache is None else (nothing, cache)
    t = jax.tree.map(jnp.asarray, t)
    flat, mapped = arguments.fold_tokens(t, lead, axes(layer.scheme))
    if cache is None:
        one = lambda t: _full(layer, jnp.asarray(start, jnp.int32), t)  # noqa: E731
        out = jax.vmap(one, (mapped,))(flat) if lead else one(t)
        return out.reshape(*lead, *out.shape[-3:])
    rows = Cache(0, 0, 0, 0, 0, 0, 0, 0, None, None)  # type: ignore[arg-type]
    return jax.vmap(lambda t, cache: _step(layer, t, cache), (mapped, rows), (0, rows))(flat, cache)


def embed(scheme: Any, params: Any, x: Float[Array, "*batch L width"], *, positions: Any = None, segments: Any = None):
    """The input of the first layer under a scheme that acts on it, mostly x + e(position); x itself under the others.

    `x` is `[..., L, width]` and floating, and so is what is returned. `params` are what `posenc.init` gives, or the
    part that layers share. `positions` and `segments` are as in `posenc.attend`; `positions=None` counts from 0 in each
    document, so decoding must pass the positions of the new tokens. Raises `ValueError` or `TypeError` where arguments
    do not fit. Inside `jit`, where values are unknown, positions that a scheme cannot serve give NaN.
    """
    if positions is None and arguments.placed(scheme):
        raise ValueError("This scheme has coordinates; draw positions with posenc.place and pass them.")
    scheme, x, params = bound(bare(scheme)), arguments.array("x", x), plain(params)
    if x.ndim < 2 or not jnp.issubdtype(x.dtype, jnp.floating):
        raise ValueError(f"x is {x.dtype} of the shape {x.shape}; it is floating numbers, [..., length, width].")
    check_params(scheme, params, Sizes(width=x.shape[-1]), shared=True)
    if not scheme.overrides("embed") or not x.size:
        return x
    lead, length, p = x.shape[:-2], x.shape[-2], jax.tree.map(jnp.asarray, pick(params, "layer"))
    admission.check_distances(scheme, positions, True)
    positions = arguments.tokens("positions", positions, lead, length, axes(scheme), False)
    segments = arguments.tokens("segments", segments, lead, length, 1, True)
    index = jnp.arange(length, dtype=jnp.int32)
    admission.admit(scheme, p, Tokens(x[..., None], x, x, positions=positions, segments=segments), 0, False)
    positions, segments = jax.tree.map(jnp.asarray, (positions, segments))

    def one(x, positions, segments):
        at = known(scheme, index, segments, positions, index + 1, 1)
        return scheme.embed(p, x, at)

    if not lead:
        return one(x, positions, segments)
    pairs = [
        arguments.fold(a, lead, tail) for a, tail in ((x, 2), (positions, arguments.ranks(axes(scheme))), (segments, 1))
    ]
    out = jax.vmap(one, [axis for _, axis in pairs])(*(a for a, _ in pairs))
    return out.reshape(*lead, *out.shape[-2:])


def _full(layer: Layer, start: Array, t: Tokens) -> Float[Array, "Q H d"]:
    """One sequence, all at once."""
    scheme, (queries, heads, d) = layer.scheme, t.q.shape
    t = silent(t._replace(key_segments=t.segments) if layer.same else t)
    qi, ki = start + jnp.arange(queries, dtype=jnp.int32), jnp.arange(t.k.shape[0], dtype=jnp.int32)
    rows, first = kernels.block(queries, ki.size), sides.start(scheme, layer.both, sizes(t))
    count = kernels.visible(layer.look, Side(None, qi, t.segments), Side(None, ki, t.key_segments), rows)
    at = known(scheme, qi, t.segments, t.positions, count, heads)
    told, _ = sides.tell(scheme, layer.both, t.x, at, first)
    key_at, key_told = at, told
    if not layer.same:
        key_at = known(scheme, ki, t.key_segments, t.key_positions, jnp.zeros_like(ki), heads)
        key_told, _ = sides.tell(scheme, layer.both, t.key_x, key_at, first)
        told = sides.lookup(scheme, layer.both, told, key_told, qi)
    keys = sides.encode(scheme, layer.both, t.k, t.v, key_told, heads)
    query, key = Side(at.position, qi, t.segments), Side(key_at.position, ki, t.key_segments)
    implied = t.positions is None and (layer.same or t.segments is None)
    pairs = Pairs(query, key, layer.look, scheme.scale(d), heads, implied)
    return kernels.mix(layer.kernel, scheme, layer.both, t.q, keys, told, pairs)


def _step(layer: Layer, t: Tokens, cache: Cache) -> tuple[Float[Array, "Q H d"], Cache]:
    """One sequence's new tokens, after those in its cache."""
    scheme, (new, heads, d), length = layer.scheme, t.q.shape, cache.length
    segments = jnp.ones(new, jnp.int32) if t.segments is None else t.segments
    t = silent(t._replace(segments=segments, key_segments=segments))
    capacity = cache.segment.shape[0]
    qi, places = length + jnp.arange(new, dtype=jnp.int32), free(cache, new)
    index = None if cache.index is None else write(cache.index, qi, places, 0)
    ki = jnp.arange(capacity, dtype=jnp.int32) if index is None else index
    segment = write(cache.segment, t.segments, places, 0)
    rows = kernels.block(new, capacity)
    seen = kernels.visible(layer.look, Side(None, qi, t.segments), Side(None, ki, segment), rows)
    at = known(scheme, qi, t.segments, t.positions, seen, heads, cache.document, cache.began)
    position = write(cache.position, at.position, places, 0)
    told, carry = sides.tell(scheme, layer.both, t.x, at, cache.carry)
    stored = keep(scheme, layer.both, t.k, t.v, told, heads)
    keys = stored = sides.Keys(*write((cache.k, cache.v, cache.said), tuple(stored), places, 1))
    query, key = Side(at.position, qi, t.segments), Side(position, ki, segment)
    if "reencoded" in scheme.limits:
        told, keys = _anew(layer, heads, told, stored, query, key, carry)
    pairs = Pairs(query, key, layer.look, scheme.scale(d), heads, False)
    out = kernels.mix(layer.kernel, scheme, layer.both, t.q, keys, told, pairs)
    if index is None:
        out = jnp.where(length + new > capacity, jnp.nan, out)
    return out, Cache(*stored, position, segment, carry, *last(cache, qi, t.segments), length + new, index)


def _anew(
    layer: Layer, heads: int, told: Any, stored: sides.Keys, query: Side, key: Side, carry: Any
) -> tuple[Any, sides.Keys]:
    """What queries are told, and all keys through their hooks, now that the text is longer."""
    scheme = layer.scheme
    at = At(key.position, key.index, key.segment, jnp.zeros_like(key.index), jnp.int32(0), heads)
    whole, _ = sides.tell(scheme, layer.both, None, at, carry)
    k, v = stored.k.swapaxes(0, 1), stored.v.swapaxes(0, 1)
    told = sides.lookup(scheme, layer.both, told, whole, query.index)
    return told, sides.encode(scheme, layer.both, k, v, whole, heads)
