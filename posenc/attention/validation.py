"""Validation of one attention call, once, before anything is traced: shapes, types, mask, weights, cache, positions.

Every refusal is one sentence with the numbers. Parameters come straight from the caller, so that their names and shapes
are compared with those that `posenc.init` makes, by shape alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from posenc.attention import kernels
from posenc.attention.cache import Cache, Written, check_ring, stored_shapes
from posenc.attention.kernels import Form, Pairs, Weighting
from posenc.attention.kernels.dropout import seeds
from posenc.attention.positions import check_apart, check_positions, numbers, per_token
from posenc.attention.tokens import Tokens
from posenc.core.compose import Chain, Composed, axes, normal_form, pick, spread
from posenc.core.distances import is_sampled
from posenc.core.masks import Mask, Window, split
from posenc.core.parameters import bound, check_key, complete
from posenc.core.scheme import Dims, Scheme
from posenc.core.shapes import KnownSizes, check_params, label
from posenc.language.echo import echoed
from posenc.numerics.sizes import FAR
from posenc.numerics.token_numbers import concrete

SHARE, FACTOR = "a share of the weights, at least 0 and below 1", "a finite number above 0, or left out"


class Options(NamedTuple):
    """The arguments of `posenc.attend` of these names."""

    mask: Mask = "causal"
    scale: float | None = None
    cap: float | None = None
    sinks: Any = None
    dropout: float = 0.0
    dropout_key: Any = None

    def weighting(self, scheme: Scheme, q: Any) -> tuple[Weighting, Any]:
        """How scores become weights, and the sinks. `q` is `[..., Q, H, d]`."""
        above_zero = lambda n: math.isfinite(n) and n > 0  # noqa: E731
        scale = scheme.scale(q.shape[-1]) if self.scale is None else _number("scale", self.scale, FACTOR, above_zero)
        cap = None if self.cap is None else _number("cap", self.cap, FACTOR, above_zero)
        rate = _number("dropout", self.dropout, SHARE, lambda n: 0 <= n < 1)
        if rate and self.dropout_key is None:
            raise ValueError(f"dropout is {rate}, so it needs dropout_key, such as jax.random.key(0); pass one.")
        return Weighting(scale, cap, rate), _sinks(scheme, self.sinks, q.shape[-2])

    def pairs(self, form: Composed, q: Any, keys: int, packed: bool) -> tuple[Window, Pairs]:
        """The window of the mask and of the scheme, and what else was given about pairs of tokens.

        `packed` says that queries and keys are two sequences, each with segments.
        """
        mask, prefix, allowed = split(self.mask)
        if allowed is self.mask and allowed is not None:  # an array alone
            if form.scheme.limits.get("bidirectional"):
                mask = Window(None, 0)
            elif form.window is not None:
                raise ValueError(
                    f"window({form.window}) lies before a token or around it, by whether the mask is causal, which an"
                    " array does not say; pass mask=('causal', array) or mask=('full', array)."
                )
        window, lead = form.narrow(mask), q.shape[:-3]
        if prefix is not None and (why := form.scheme.limits.get("bidirectional")):
            raise ValueError(f"{label(form.scheme)} is causal only: {why}; a prefix sees itself whole: leave it out.")
        if packed and (prefix is not None or window.sinks):
            raise ValueError(
                "A prefix and sinks are counted from where a document began, which is unknown where queries and keys"
                " are two sequences with segments; pass one sequence, or leave segments out."
            )
        seed = None
        if self.dropout and self.dropout_key is not None:
            check_key("dropout_key", self.dropout_key)
            seed = seeds(self.dropout_key, math.prod(lead)).reshape(*lead, 2)
        return window, Pairs(_prefix(prefix, lead), _allowed(allowed, (*lead, q.shape[-3], keys)), seed)


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
    check_apart(t)
    width, (heads, dim) = None if t.x is None else t.x.shape[-1], t.q.shape[-2:]
    check_params(scheme, params, KnownSizes(width, heads, dim, t.k.shape[-2]))
    if cache is not None:
        kernel = check_cache(scheme, params, cache, t, narrowed, query_start, kernel)
        check_pairs(cache, t, pairs)
    start = cache.length if cache is not None else 0 if query_start is None else query_start
    keys = keys if cache is None else cache.segment.shape[1]
    by_name = kernel == "dense"
    in_blocks = not by_name and kernels.pay(t.q.shape[-3], keys)
    kernel = kernels.choose(scheme, kernel, t.q, keys, pairs.allowed is not None)
    weighting, sinks = options.weighting(scheme, t.q)
    groups = pick(params, "layer"), pick(params, "heads")
    implied = cache is None and t.positions is None and (same or t.segments is None)
    form = Form(scheme, groups, narrowed, weighting, sinks, heads, implied, same, kernel, in_blocks, not by_name)
    check_positions(scheme, groups[0], t, start, cache is not None)
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
    for stored in () if cache is None else (cache.k.dtype, cache.v.dtype):
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
    if positions is None and form.coordinates:
        raise ValueError("This scheme has coordinates; draw positions with posenc.place and pass them.")


def check_sequences(scheme: Scheme, p: Any, t: Tokens) -> Tokens:
    """Whole sequences, each alone: their positions and segments in the final types, or a refusal."""
    lead, length = t.q.shape[:-3], t.q.shape[-3]
    check_distances(scheme, t.positions, True)
    positions = per_token("positions", t.positions, lead, length, axes(scheme), False)
    t = t._replace(positions=positions, segments=per_token("segments", t.segments, lead, length, 1, True))
    check_apart(t)
    check_positions(scheme, p, t, 0, False)
    return t


def check_distances(scheme: Scheme, positions: Any, all_tokens: bool) -> None:
    """Refuse sampled distances if any hook uses absolute positions."""
    if not is_sampled(positions):
        return
    if not all_tokens:
        raise ValueError("Sampled distances serve one whole sequence; pass all its tokens at once, or positions.")
    if isinstance(scheme, Chain):
        for s, part in zip(scheme.parts, spread(scheme, positions), strict=True):
            check_distances(s, part, all_tokens)
    elif (
        scheme.positional
        or scheme.overrides("embed", "value", "output")
        or scheme.reads == "positions"
        or (scheme.reads in ("nothing", "distance") and scheme.overrides("query", "key"))
    ):
        raise ValueError(
            f"{label(scheme)} uses absolute positions, and sampled distances hold only how far apart tokens are; use"
            " positions, or a scheme of distances such as 'alibi'."
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
    kinds = {a.dtype for a in jax.tree.leaves(t.positions)} - {a.dtype for a in jax.tree.leaves(cache.position)}
    if kinds:
        raise TypeError(
            f"Positions are {kinds.pop()}, the cache's are not; make it with posenc.Cache.empty(positions=...)."
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
    keys, position, carry = stored_shapes(scheme, parts, dims, capacity, t.q.dtype, jnp.int32)
    new, stored = ((*keys, position, carry), (cache.k, cache.v, cache.key_info, cache.position, cache.carry))
    shapes = lambda tree: jax.tree.map(lambda a: str(np.shape(a)), tree)  # noqa: E731
    expected = jax.tree.map(lambda a: str((rows, *a.shape)), new)
    if jax.tree.structure(new) != jax.tree.structure(stored) or shapes(stored) != expected:
        raise ValueError(
            f"This cache, with keys of the shape {cache.k.shape}, is not one of {label(scheme)} with {t.k.shape[-2]}"
            f" key heads of {head} features; make it with posenc.Cache.empty for this scheme and these sizes."
        )
    if cache.written != Written.by(scheme):
        first, settings = cache.written.name, " with other settings" * (cache.written.name == label(scheme))
        raise ValueError(
            f"This cache was made for {first}{settings}, and is now given to {label(scheme)}; make one with"
            " posenc.Cache.empty for this scheme, and pass the whole text."
        )


def _number(name: str, value: Any, what: str, fits: Callable[[float], bool]) -> float:
    """A number that is known before tracing."""
    if isinstance(value, jax.core.Tracer):
        raise TypeError(f"{name} is traced; it is {what}, fixed before the program is compiled.")
    kind = np.asarray(value).dtype
    real = jnp.issubdtype(kind, jnp.floating) or jnp.issubdtype(kind, jnp.integer)
    if np.ndim(value) or not real:
        raise TypeError(f"{name} is {value!r}; it is {what}.")
    if not fits(float(value)):
        raise ValueError(f"{name} is {value!r}; it is {what}.")
    return float(value)


def _sinks(scheme: Scheme, sinks: Any, heads: int) -> Any:
    """A score for each head."""
    if sinks is None:
        return None
    if scheme.overrides("normalize"):
        raise ValueError(f"{label(scheme)} has no softmax for sinks to stand in; leave them out.")
    if not hasattr(sinks, "dtype") or not jnp.issubdtype(sinks.dtype, jnp.floating):
        raise TypeError(f"sinks is of type {type(sinks).__name__}; it is floating numbers, one for each head.")
    if sinks.shape != (heads,):
        raise ValueError(f"sinks has the shape {sinks.shape}; it is {(heads,)}, a score for each head.")
    return jnp.asarray(sinks)


def _prefix(length: Any, lead: tuple[int, ...]) -> Any:
    """How long the prefix is, for all sequences or for each."""
    if length is None:
        return None
    a = length if isinstance(length, jax.Array) else np.asarray(length)
    if not jnp.issubdtype(a.dtype, jnp.integer):
        raise TypeError(f"The length of a prefix is {length!r}; it is a whole number, or an array of them.")
    if a.shape not in ((), lead):
        raise ValueError(f"The length of a prefix has the shape {a.shape}; it is one number, or {lead}, one for each.")
    if not isinstance(a, jax.core.Tracer) and a.size and a.min() < 0:
        raise ValueError(f"The length of a prefix is {a.min()}; it is at least 0.")
    if not isinstance(a, jax.core.Tracer) and a.size and a.max() >= FAR:
        raise ValueError(f"The length of a prefix is {a.max()}; it is below {FAR}.")
    return jnp.asarray(a, jnp.int32)


def _allowed(mask: Any, shape: tuple[int, ...]) -> Any:
    """Which keys each query may see, for all sequences or for each."""
    if mask is None:
        return None
    if mask.dtype != bool:
        raise TypeError(f"mask is an array of {mask.dtype}; it holds booleans, True where a query sees a key.")
    if mask.shape not in (shape[-2:], shape):
        raise ValueError(
            f"mask has the shape {mask.shape}; it is {shape[-2:]} or {shape}, queries and keys, for all heads alike."
        )
    return jnp.asarray(mask)
