"""Validation of one attention call, once, before anything is traced: shapes, types, mask, weights, cache, positions.

Every refusal is one sentence with the numbers. Parameters come straight from the caller, so that their names and shapes
are compared with those that `posenc.init` makes, by shape alone.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from posenc.attention import kernels
from posenc.attention.cache import Cache, Written, check_ring, of_share_parts, parted, stored_shapes
from posenc.attention.kernels import Form
from posenc.attention.options import Options
from posenc.attention.positions import check_apart, check_positions, numbers, per_token
from posenc.attention.shares import sizes
from posenc.attention.tokens import Tokens, zeroed
from posenc.core.compose import SEVERAL, Composed, Shares, axes, normal_form, parts, pick, spread
from posenc.core.distances import is_sampled
from posenc.core.masks import Window
from posenc.core.parameters import bound, complete
from posenc.core.scheme import Dims, Scheme
from posenc.core.shapes import KnownSizes, check_params, label
from posenc.language.echo import echoed
from posenc.numerics.sizes import FAR
from posenc.numerics.token_numbers import concrete


def validate(
    scheme: Any, params: Any, t: Tokens, query_start: Any, options: Options, kernel: str, cache: Cache | None
) -> tuple[Form, Tokens, Any]:
    """The form of a call, its tokens in their final types, and the index of the first query.

    Of queries, keys and values only shapes and types are read, so `jax.ShapeDtypeStruct` serves for them.
    """
    composed = normal_form(scheme)
    scheme = bound(composed.scheme)
    params = complete(scheme, params)
    check_arrays(t.q, t.k, t.v)
    keys, aligned = t.k.shape[-3], t.q.shape[-3] == t.k.shape[-3] and query_start is None
    packed = t.segments is not None and cache is None and not (aligned and t.key_segments is None)
    narrowed, pairs = options.pairs(composed, t.q, keys, packed)
    check_scheme(composed, narrowed, t.positions, t.x)
    same = aligned and all(a is None for a in (t.key_x, t.key_positions, t.key_segments))
    check_distances(scheme, t.positions, aligned and cache is None and t.key_positions is None)
    t = check_tokens(t, scheme, query_start, cache is not None)
    check_apart(scheme, t)
    width, (heads, dim) = None if t.x is None else t.x.shape[-1], t.q.shape[-2:]
    check_params(scheme, params, KnownSizes(width, heads, dim, t.k.shape[-2]))
    if cache is not None:
        kernel = check_cache(scheme, params, cache, t, narrowed, query_start, kernel)
        check_pairs(cache, t, pairs)
    start = cache.length if cache is not None else 0 if query_start is None else query_start
    keys = keys if cache is None else cache.segment.shape[1]
    by_name = kernel == "dense"
    in_blocks = not by_name and kernels.pay(t.q.shape[-3], keys)
    groups = pick(params, "layer"), pick(params, "heads")
    implied = cache is None and t.positions is None and (same or t.segments is None)

    narrowed = narrowed.by_index() if implied else check_window(scheme, narrowed, t.positions)

    def form_of(scheme: Scheme, params: Any, heads: int) -> Form:
        kernel_name = kernels.choose(scheme, kernel, t.q, keys, pairs.allowed is not None)
        weighting, sinks = options.weighting(scheme, t.q)
        unplaced = None if implied else composed.unplaced
        rest = implied, same, kernel_name, in_blocks, not by_name, unplaced
        return Form(scheme, params, narrowed, weighting, sinks, heads, *rest)

    if isinstance(scheme, Shares):
        kernels.choose(scheme, kernel, t.q, keys)  # refuses a kernel that does not serve them all
        each = tuple(form_of(cut.scheme, None, cut.heads) for cut in scheme.cuts(heads, t.k.shape[-2]))
        sinks, each = each[0].sinks, tuple(share._replace(sinks=None) for share in each)
        form = each[0]._replace(scheme=scheme, params=groups, sinks=sinks, heads=heads, shares=each)
    else:
        form = form_of(scheme, groups, heads)
    at_zero = [zeroed(scheme, a, composed.unplaced) for a in (t.positions, t.key_positions)]
    somewhere = t._replace(positions=at_zero[0], key_positions=at_zero[1])
    check_positions(scheme, groups[0], somewhere, start, cache is not None)
    return form, t._replace(pairs=pairs), start


def array(name: str, a: Any) -> Array:
    """An array of jax; float64 is refused where jax would keep 32 bits of it without a word."""
    if getattr(a, "dtype", None) == np.float64 and jax.dtypes.canonicalize_dtype(np.float64) != np.float64:
        raise TypeError(f"{name} is float64, of which jax keeps 32 bits; pass float32, or set jax_enable_x64.")
    return jnp.asarray(numbers(name, a))


def check_types(q: Array, k: Array, v: Array, cache: Cache | None) -> None:
    """Refuse queries, keys and values of several types, or of another type than the cache's."""
    shown = f"q {jnp.shape(q)} {q.dtype}, k {jnp.shape(k)} {k.dtype}, v {jnp.shape(v)} {v.dtype}"
    if not (q.dtype == k.dtype == v.dtype and jnp.issubdtype(q.dtype, jnp.floating)):
        raise TypeError(f"Queries, keys and values share one floating type; given were {shown}.")
    if q.dtype.itemsize < 2:
        raise TypeError(f"Queries, keys and values have 16 bits or more; given were {shown}; widen them by astype.")
    for stored in () if cache is None else {a.dtype for a in jax.tree.leaves((cache.k, cache.v))}:
        if stored != q.dtype:
            raise TypeError(f"The cache holds {stored}, but q, k and v are {q.dtype}; make it with dtype={q.dtype}.")


def check_arrays(q: Array, k: Array, v: Array) -> None:
    """Refuse queries, keys and values that do not fit together."""
    shown = f"q {jnp.shape(q)} {q.dtype}, k {jnp.shape(k)} {k.dtype}, v {jnp.shape(v)} {v.dtype}"
    if not q.ndim == k.ndim == v.ndim or q.ndim < 3:
        raise ValueError(f"Queries, keys and values are [..., length, heads, features] alike; given were {shown}.")
    check_types(q, k, v, None)
    if q.shape[:-3] != k.shape[:-3] or k.shape[:-1] != v.shape[:-1] or q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"Batch, key length, key heads and features of queries and keys must agree; given were {shown}."
        )
    if not q.shape[-1]:
        raise ValueError(f"Queries and keys have at least 1 feature; given were {shown}.")
    if not q.shape[-2] or not k.shape[-2] or q.shape[-2] % k.shape[-2]:
        raise ValueError(f"{k.shape[-2]} key heads do not divide {q.shape[-2]} query heads; given were {shown}.")


def check_features(name: str, x: Any, lead: tuple[int, ...], length: int) -> Any:
    """Features of tokens, `[..., length, width]`."""
    x = None if x is None else array(name, x)
    if x is not None and not jnp.issubdtype(x.dtype, jnp.floating):
        raise TypeError(f"{name} is {x.dtype} of the shape {x.shape}; it is floating numbers, the features of tokens.")
    if x is not None and (x.ndim != len(lead) + 2 or x.shape[:-1] != (*lead, length)):
        raise ValueError(
            f"{name} has the shape {x.shape}; it is {(*lead, length)} and a width, as queries or keys are."
        )
    return x


def check_tokens(t: Tokens, scheme: Scheme, query_start: Any, cached: bool) -> Tokens:
    """Everything that was passed about tokens, in its final type, or a refusal."""
    lead, queries, keys = t.q.shape[:-3], t.q.shape[-3], t.k.shape[-3]
    t = t._replace(
        x=check_features("x", t.x, lead, queries),
        key_x=check_features("key_x", t.key_x, lead, keys),
        positions=per_token("positions", t.positions, lead, queries, axes(scheme), False),
        key_positions=per_token("key_positions", t.key_positions, lead, keys, axes(scheme), False),
        segments=per_token("segments", t.segments, lead, queries, 1, True),
        key_segments=per_token("key_segments", t.key_segments, lead, keys, 1, True),
    )
    passed = [n for n in ("key_x", "key_positions", "key_segments") if getattr(t, n) is not None]
    if cached:
        if passed or queries != keys:
            raise ValueError(
                f"With a cache, queries and keys are the same new tokens; {queries} and {keys} were given."
            )
        return t
    apart = queries != keys or query_start is not None
    why = scheme.limits.get("cross")
    if why and queries != keys and query_start is None and queries and keys:
        raise ValueError(
            f"{label(scheme)} is undefined between two sequences, since {why}; for {queries} queries and {keys} keys,"
            " where the queries are among the keys, pass query_start, the index of the first."
        )
    if passed and not apart:
        shared = [n for n in ("x", "positions", "segments") if getattr(t, f"key_{n}") is None]
        t, apart = t._replace(**{f"key_{n}": getattr(t, n) for n in shared}), True
    if apart and scheme.contextual and t.key_x is None:
        raise ValueError(f"{label(scheme)} reads the features of tokens; pass key_x, those of the keys, beside x.")
    if apart and (t.positions is None) != (t.key_positions is None):
        raise ValueError(
            "Where queries are not the keys' own tokens, pass both positions and key_positions, or neither."
        )
    if apart and (t.segments is None) != (t.key_segments is None):
        raise ValueError("Where queries are not the keys' own tokens, pass both segments and key_segments, or neither.")
    heads, head = t.q.shape[-2:]
    sized = Dims(heads * head, heads, head, 1, key_heads=t.k.shape[-2])
    if apart and "query" in scheme.neighbour_carry(sized):
        raise ValueError(
            f"{label(scheme)} changes each query by those before it, which are not here; pass a whole sequence, or one"
            " part after another with a cache."
        )
    if apart and t.segments is not None and (t.segments.dtype == bool) != (t.key_segments.dtype == bool):
        raise ValueError(
            "Of segments and key_segments one holds numbers and the other booleans, which know one document; give both"
            " as numbers, 0 for padding."
        )
    if query_start is not None and t.segments is not None and t.positions is None:
        raise ValueError("Where queries start inside a segment its start is unknown; pass positions and key_positions.")
    if isinstance(query_start, int) and query_start >= FAR:
        raise ValueError(f"query_start is {echoed(query_start)}; it is below {FAR}.")
    start = None if query_start is None else concrete(numbers("query_start", query_start))
    if start is not None and (start.ndim or start < 0 or not np.issubdtype(start.dtype, np.integer)):
        raise ValueError(f"query_start is {echoed(query_start)}; it is the index of the first query, at least 0.")
    if start is not None and start > FAR - queries:
        raise ValueError(f"query_start is {echoed(query_start)}; with {queries} queries it is at most {FAR - queries}.")
    if why and start is not None and start + queries > keys and queries and keys:
        raise ValueError(
            f"{label(scheme)} is undefined between two sequences, so queries are among the keys; {queries} from index"
            f" {int(start)} on are not among {keys}."
        )
    return t


def check_scheme(form: Composed, window: Window, positions: Any, x: Any) -> None:
    """Refuse what this scheme cannot do."""
    scheme = form.scheme
    if (why := scheme.limits.get("bidirectional")) and not window.causal:
        raise ValueError(f"{label(scheme)} is causal only: {why}; use mask='causal'.")
    if scheme.contextual and x is None:
        raise ValueError(f"{label(scheme)} reads the features of tokens; pass x, the input of this attention.")
    if form.unplaced is not None and is_sampled(positions):
        raise ValueError("Sampled distances hold no place that a token could lack; leave unplaced out.")
    if positions is None and form.coordinates:
        raise ValueError("This scheme has coordinates; draw positions with posenc.place and pass them.")


def check_sequences(scheme: Scheme, p: Any, t: Tokens, unplaced: int | None = None) -> Tokens:
    """Whole sequences, each alone: their positions and segments in the final types, or a refusal."""
    lead, length = t.q.shape[:-3], t.q.shape[-3]
    check_distances(scheme, t.positions, True)
    positions = per_token("positions", t.positions, lead, length, axes(scheme), False)
    t = t._replace(positions=positions, segments=per_token("segments", t.segments, lead, length, 1, True))
    check_apart(scheme, t)
    check_positions(scheme, p, t._replace(positions=zeroed(scheme, t.positions, unplaced)), 0, False)
    return t


def check_window(scheme: Scheme, window: Window, positions: Any) -> Window:
    """Refuse a window in positions where a position is not one number."""
    if window.of_positions and is_sampled(positions):
        raise ValueError("Sampled distances are no positions, which this window counts; use window(n) of the index.")
    many = [
        s
        for share in (scheme.each if isinstance(scheme, Shares) else (scheme,))
        for s in parts(share)[:1]
        if s.axes > 1
    ]
    if window.of_positions and many:
        raise ValueError(
            f"A window in positions counts one number, and {label(many[0])} has {many[0].axes} at each token; use"
            " window(n) of the index."
        )
    return window


def check_distances(scheme: Scheme, positions: Any, all_tokens: bool) -> None:
    """Refuse sampled distances if any hook reads the place of a token."""
    if not is_sampled(positions):
        return
    if not all_tokens:
        raise ValueError("Sampled distances serve one whole sequence; pass all its tokens at once, or positions.")
    if isinstance(scheme, SEVERAL):
        for s, part in zip(scheme.parts, spread(scheme, positions), strict=True):
            check_distances(s, part, all_tokens)
    elif (
        scheme.positional
        or scheme.overrides("embed", "value", "output")
        or scheme.reads == "positions"
        or (scheme.reads in ("nothing", "distance") and scheme.overrides("query", "key"))
    ):
        raise ValueError(
            f"{label(scheme)} reads the place of each token, and sampled distances hold only how far apart tokens are;"
            " use positions, or a scheme of distances such as 'alibi'."
        )


def check_cache(
    scheme: Scheme, params: Any, cache: Cache, t: Tokens, window: Window, query_start: Any, kernel: str
) -> str:
    """Refuse a cache that is full, of another batch, scheme or type, and a mask that sees the future.

    Returns the kernel to choose from: a ring has one.
    """
    if not isinstance(cache, Cache):
        raise TypeError(
            f"cache is of type {type(cache).__name__}; make it with posenc.Cache.empty(scheme, params, ...)."
        )
    (rows, capacity), new = cache.segment.shape, t.q.shape[-3]
    if t.q.shape[:-3] != (rows,):
        raise ValueError(f"This cache is of a batch of {rows}; q, k and v have the batch axes {t.q.shape[:-3]}.")
    if not window.causal:
        raise ValueError("A cache serves decoding, which sees no future; use mask='causal' or posenc.Window(left, 0).")
    if query_start is not None:
        raise ValueError("With a cache, the first query stands where the cache ends; leave query_start out.")
    _check_stored(scheme, params, cache, t)
    types = lambda positions: [str(a.dtype) for a in jax.tree.leaves(spread(scheme, positions))]  # noqa: E731
    passed, held = types(t.positions), types(cache.position)
    if t.positions is not None and passed != held:
        raise TypeError(
            f"Positions are {', '.join(passed)}, and the cache's {', '.join(held)}; make it with"
            " posenc.Cache.empty(positions=...) of the types that are given, a tuple for a sum."
        )
    if cache.index is not None:
        check_ring(scheme, window, capacity, new)
        if kernel in ("tiled", "rows"):
            raise ValueError(f"A ring is computed by kernel='dense', not {kernel!r}: leave kernel out, or ring.")
        return "dense" if kernel == "auto" else kernel
    length = concrete(cache.length)
    if length is not None and length + new > capacity:
        raise ValueError(
            f"The cache holds {int(length)} of {capacity} slots and {new} more were given; make it larger."
        )
    return kernel


def check_pairs(cache: Cache, t: Tokens, pairs: Any) -> None:
    """Refuse an array for the mask, and a prefix that is not whole when its first token is seen."""
    if pairs.allowed is not None:
        raise ValueError("With a cache, the mask is causal or a window, not an array; pass segments for padding.")
    if pairs.prefix is None:
        return
    if cache.index is not None:
        raise ValueError("A ring forgets the tokens that a prefix keeps in sight; make the cache without ring.")
    length, prefix = concrete(cache.length), concrete(pairs.prefix)
    if prefix is None or length is None or t.segments is not None:
        return  # NaN then takes the place of what cannot be known
    if length + t.q.shape[-3] < prefix.max(initial=0):
        raise ValueError(
            f"A prefix of {prefix.max(initial=0)} tokens sees itself whole, and {int(length) + t.q.shape[-3]} are in"
            " this cache; pass the prefix in one call."
        )


def _check_stored(scheme: Scheme, params: Any, cache: Cache, t: Tokens) -> None:
    """Refuse a cache whose arrays are not those that the new tokens will be written to, and one of another scheme."""
    check_types(t.q, t.k, t.v, cache)
    (rows, capacity), (heads, head) = cache.segment.shape, t.q.shape[-2:]
    if t.v.shape[-1] != head:
        raise ValueError(f"A cache holds values as wide as keys; v has {t.v.shape[-1]} features, and k {head}.")
    width = heads * head if t.x is None else t.x.shape[-1]
    dims = Dims(width, heads, head, capacity, key_heads=t.k.shape[-2])
    parts = pick(params, "layer"), pick(params, "heads")
    shapes = lambda tree: jax.tree.map(lambda a: str(np.shape(a)), tree)  # noqa: E731
    many = len(cache.k) if isinstance(cache.k, tuple) else None
    fits = many == (len(scheme.each) if isinstance(scheme, Shares) else None)
    for (cut, size), held in zip(sizes(scheme, dims), parted(scheme, cache), strict=True) if fits else ():
        own = of_share_parts(scheme, cut, parts)
        keys, position, carry = stored_shapes(cut.scheme, own, size, capacity, t.q.dtype, jnp.int32)
        new = *keys, position, carry
        stored = held.k, held.v, held.key_info, held.position, (held.carry, held.past)
        expected = jax.tree.map(lambda a: str((rows, *a.shape)), new)
        fits = fits and jax.tree.structure(new) == jax.tree.structure(stored) and shapes(stored) == expected
    if not fits:
        held = " and ".join(str(a.shape) for a in jax.tree.leaves(cache.k))
        raise ValueError(
            f"This cache, with keys of the shape {held}, is not one of {label(scheme)} with {t.k.shape[-2]}"
            f" key heads of {head} features; make it with posenc.Cache.empty for this scheme and these sizes."
        )
    if cache.written != Written.by(scheme):
        first, settings = cache.written.name, " with other settings" * (cache.written.name == label(scheme))
        raise ValueError(
            f"This cache was made for {first}{settings}, and is now given to {label(scheme)}; make one with"
            " posenc.Cache.empty for this scheme, and pass the whole text."
        )
