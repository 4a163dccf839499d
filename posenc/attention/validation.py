"""Validation of one attention call, once, before anything is traced: shapes, types, cache and positions.

What the call says of its mask and weights is checked where it is made ready for the kernels, in `options`.

Every refusal is one sentence with the numbers. Parameters come straight from the caller, so that their names and shapes
are compared with those that `posenc.init` makes, by shape alone.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from posenc.attention import kernels
from posenc.attention.cache import Cache, check_ring, stored_shapes
from posenc.attention.encode import Layer
from posenc.attention.options import Options
from posenc.attention.tokens import Tokens
from posenc.core.compose import Chain, Composed, axes, imply, normal_form, pick, spread
from posenc.core.distances import Distances, drawn, pasts
from posenc.core.masks import Window, documents, since_start
from posenc.core.parameters import bound, complete
from posenc.core.scheme import Dims, Scheme
from posenc.core.shapes import KnownSizes, check_params, label
from posenc.numerics.sizes import known


def validate(
    scheme: Any, params: Any, t: Tokens, query_start: Any, options: Options, kernel: str, cache: Cache | None
) -> tuple[Layer, Tokens, Any]:
    """The validated layer, its tokens in their final types, and the index of the first query.

    Of queries, keys and values only shapes and types are read, so `jax.ShapeDtypeStruct` serves for them.
    """
    form = normal_form(scheme)
    scheme = bound(form.scheme)
    params = complete(scheme, params)
    check_arrays(t.q, t.k, t.v)
    keys, aligned = t.k.shape[-3], t.q.shape[-3] == t.k.shape[-3] and query_start is None
    packed = t.segments is not None and cache is None and not (aligned and t.key_segments is None)
    narrowed, pairs = options.pairs(form, t.q, keys, packed)
    check_scheme(form, narrowed, t.positions, t.x)
    same = aligned and all(a is None for a in (t.key_x, t.key_positions, t.key_segments))
    check_distances(scheme, t.positions, aligned and cache is None and t.key_positions is None)
    t = check_tokens(t, scheme, query_start, cache is not None)
    width = None if t.x is None else t.x.shape[-1]
    check_params(scheme, params, KnownSizes(width, *t.q.shape[-2:], t.k.shape[-2]))
    if cache is not None:
        kernel = check_cache(scheme, params, cache, t, narrowed, query_start, kernel)
        check_pairs(cache, t, pairs)
    start = cache.length if cache is not None else 0 if query_start is None else query_start
    kernel = kernels.choose(
        scheme, kernel, t.q, keys if cache is None else cache.segment.shape[1], pairs.allowed is not None
    )
    weighting, sinks = options.weighting(scheme, t.q)
    groups = pick(params, "layer"), pick(params, "heads")
    layer = Layer(scheme, groups, narrowed, weighting, sinks, same, kernel)
    t = t._replace(pairs=pairs)
    check_positions(scheme, layer.params[0], t, start, cache is not None)
    return layer, t, start


def array(name: str, a: Any) -> Array:
    """An array of jax; float64 is refused where jax would keep 32 bits of it without a word."""
    if getattr(a, "dtype", None) == np.float64 and not jax.config.jax_enable_x64:
        raise TypeError(f"{name} is float64, of which jax keeps 32 bits; pass float32, or set jax_enable_x64.")
    return jnp.asarray(_numbers(name, a))


def _numbers(name: str, a: Any) -> Any:
    """An array of NumPy or jax. NumPy's stay NumPy's: their values can be checked inside jit too."""
    if isinstance(a, jax.Array | np.ndarray):
        found = a
    else:
        traced = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(a))
        try:
            found = jnp.asarray(a) if traced else np.asarray(a)
        except (TypeError, ValueError):
            found = None
    if found is None or not (found.dtype == bool or jnp.issubdtype(found.dtype, jnp.number)):
        shown = repr(a) if a is None or isinstance(a, str) and len(a) < 20 else f"of type {type(a).__name__}"
        raise TypeError(f"{name} is {shown}; it is an array of numbers.")
    return found


def check_arrays(q: Array, k: Array, v: Array) -> None:
    """Refuse queries, keys and values that do not fit together."""
    shown = f"q {jnp.shape(q)} {q.dtype}, k {jnp.shape(k)} {k.dtype}, v {jnp.shape(v)} {v.dtype}"
    if not q.ndim == k.ndim == v.ndim or q.ndim < 3:
        raise ValueError(f"Queries, keys and values are [..., length, heads, features] alike; given were {shown}.")
    if not (q.dtype == k.dtype == v.dtype and jnp.issubdtype(q.dtype, jnp.floating)):
        raise TypeError(f"Queries, keys and values share one floating type; given were {shown}.")
    if q.dtype.itemsize < 2:
        raise TypeError(f"Queries, keys and values have 16 bits or more; given were {shown}; widen them by astype.")
    if q.shape[:-3] != k.shape[:-3] or k.shape[:-1] != v.shape[:-1] or q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"Batch, key length, key heads and features of queries and keys must agree; given were {shown}."
        )
    if not q.shape[-2] or not k.shape[-2] or q.shape[-2] % k.shape[-2]:
        raise ValueError(f"{k.shape[-2]} key heads do not divide {q.shape[-2]} query heads; given were {shown}.")


def check_features(name: str, x: Any, lead: tuple[int, ...], length: int) -> Any:
    """Features of tokens, `[..., length, width]`."""
    x = None if x is None else array(name, x)
    if x is not None and (x.ndim != len(lead) + 2 or x.shape[:-1] != (*lead, length)):
        raise ValueError(
            f"{name} has the shape {x.shape}; it is {(*lead, length)} and a width, as queries or keys are."
        )
    return x


def per_token(name: str, a: Any, lead: tuple[int, ...], length: int, axes: Any, whole: bool) -> Any:
    """Numbers per token, of at least 32 bits: `[L]` for all sequences, or `[..., L]`; a tuple with one for each part.

    With `whole` they are the numbers of documents.
    """
    if a is None:
        return None
    if isinstance(a, Distances):
        return Distances(*(per_token(name, part, lead, length, axes, whole) for part in (a.past, a.future)))
    if isinstance(a, tuple):
        if not isinstance(axes, tuple) or len(axes) != len(a):
            parts = f"a sum of {len(axes)} schemes" if isinstance(axes, tuple) else "one scheme"
            raise ValueError(f"{name} is a tuple of {len(a)}, given to {parts}; give one array, or one for each part.")
        if any(part is None for part in a):
            raise TypeError(f"{name} has None for a part of the sum; give an array for each part, or None for all.")
        return tuple(per_token(name, part, lead, length, n, whole) for part, n in zip(a, axes, strict=True))
    if isinstance(axes, tuple):
        each = set(jax.tree.leaves(axes))
        if len(each) > 1:
            raise ValueError(f"The parts of this sum have {axes} axes; give {name} as a tuple, an array for each part.")
        if isinstance(a, list) and any(np.ndim(part) for part in a):
            raise TypeError(
                f"{name} is a list of {len(a)}, given to a sum; give a tuple with an array for each part, or one array."
            )
        axes = each.pop()
    a = _numbers(name, a)
    if whole and not jnp.issubdtype(a.dtype, jnp.integer) or not _real(a.dtype):
        raise TypeError(f"{name} is of type {a.dtype}; it holds whole numbers{'' if whole else ' or real ones'}.")
    tail = (length, axes) if axes > 1 and a.shape[-2:] == (length, axes) else (length,)
    if a.shape not in (tail, (*lead, *tail)):
        raise ValueError(f"{name} has the shape {a.shape}; it is {tail} or {(*lead, *tail)}, a number for each token.")
    if axes > 1 and tail == (length,):
        raise ValueError(
            f"{name} has one number for each token, but this scheme has {axes} axes; give {(length, axes)}."
        )
    a = _exact(name, a)
    if whole:
        check_documents(name, a)
    return a


def _real(dtype: Any) -> bool:
    return jnp.issubdtype(dtype, jnp.integer) or jnp.issubdtype(dtype, jnp.floating)


def _exact(name: str, a: Any) -> Any:
    """Numbers in the type that attention computes with, where what is known of them fits into it."""
    if jnp.issubdtype(a.dtype, jnp.integer):
        kind = jax.dtypes.canonicalize_dtype(np.int64 if a.dtype == np.int64 else np.int32)
    else:
        kind = jax.dtypes.canonicalize_dtype(jnp.promote_types(a.dtype, jnp.float32))
    if a.dtype == kind and jnp.issubdtype(kind, jnp.integer) or (known := concrete(a)) is None:
        return a.astype(kind)
    limit = 2 ** (jnp.iinfo(kind).bits - 1) if jnp.issubdtype(kind, jnp.integer) else 2**31
    if known.size and (float(known.max()) >= limit or float(known.min()) < -limit):
        worst = known.max() if float(known.max()) >= limit else known.min()
        raise ValueError(f"{name} holds {worst}; numbers of tokens lie between -{limit} and {limit - 1}.")
    return a.astype(kind)


def check_documents(name: str, segments: Any) -> None:
    """Refuse documents that come in two pieces, and numbers below 0, where the values are known.

    Positions count from where a document began, so a later piece would be counted from the wrong token.
    """
    known = concrete(segments)
    if known is None or not known.size:
        return
    if known.min() < 0:
        raise ValueError(f"{name} holds {known.min()}; a document is a number above 0, and padding is 0.")
    document = documents(known)
    pieces = np.diff(document, axis=-1, prepend=0) != 0
    ordered = np.sort(document, -1)
    names = np.diff(ordered, axis=-1, prepend=0) != 0
    if np.any(pieces.sum(-1) != names.sum(-1)):
        raise ValueError(f"{name} names a document again after another one; give each piece a number of its own.")


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
    start = None if query_start is None else concrete(query_start)
    if start is not None and (start.ndim or start < 0 or not np.issubdtype(start.dtype, np.integer)):
        raise ValueError(f"query_start is {query_start!r}; it is the index of the first query, at least 0.")
    if why and start is not None and start + queries > keys and queries and keys:
        raise ValueError(
            f"{label(scheme)} is undefined between two sequences, so queries are among the keys; {queries} from index"
            f" {int(start)} on are not among {keys}."
        )
    return t


def concrete(a: Any) -> np.ndarray | None:
    """The values of an array, where they are known before tracing."""
    return None if isinstance(a, jax.core.Tracer) else np.asarray(a)


def check_scheme(form: Composed, window: Window, positions: Any, x: Any) -> None:
    """Refuse what this scheme cannot do."""
    scheme = form.scheme
    if (why := scheme.limits.get("bidirectional")) and not window.causal:
        raise ValueError(f"{label(scheme)} is causal only: {why}; use mask='causal'.")
    if scheme.contextual and x is None:
        raise ValueError(f"{label(scheme)} reads the features of tokens; pass x, the input of this attention.")
    if positions is None and form.coordinates:
        raise ValueError("This scheme has coordinates; draw positions with posenc.place and pass them.")


def check_distances(scheme: Scheme, positions: Any, whole: bool) -> None:
    """Refuse sampled distances if any hook uses absolute positions."""
    if not drawn(positions):
        return
    if not whole:
        raise ValueError("Sampled distances serve one whole sequence; pass all its tokens at once, or positions.")
    if isinstance(scheme, Chain):
        for s, part in zip(scheme.parts, spread(scheme, positions), strict=True):
            check_distances(s, part, whole)
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


def check_positions(scheme: Scheme, p: Any, t: Tokens, start: Any, cached: bool) -> None:
    """Let the scheme refuse positions that it cannot serve; those of padding are left out."""
    if not scheme.overrides("check_positions"):
        return
    sides = [(t.positions, t.segments)] + [(t.key_positions, t.key_segments)] * (t.key_positions is not None)
    for positions, segments in sides:
        real = None if segments is None else concrete(segments)
        if positions is None:
            if segments is not None and (cached or real is None):
                continue  # where documents start is not known before the program runs
            count = t.q.shape[-3]
            positions = start + (np if known(count) else jnp).arange(count, dtype=np.int32)
            positions = positions if real is None else since_start(positions, real)
            positions = imply(scheme, positions)
        numbers = spread(scheme, pasts(positions))
        scheme.check_positions(p, jax.tree.map(lambda a, real=real: _known(a, real), numbers))


def _known(positions: Any, segments: np.ndarray | None) -> Any:
    """Positions as NumPy's where they are concrete, those of padding set to zero, which every scheme has."""
    if isinstance(positions, jax.core.Tracer):
        return positions
    positions = np.asarray(positions)
    if segments is None:
        return positions
    real = segments > 0
    wide = positions.ndim > 1 and positions.shape[-2] == real.shape[-1] and positions.shape[-1] != real.shape[-1]
    return np.where(real[..., None] if wide else real, positions, np.zeros((), positions.dtype))


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
    """Refuse a cache whose arrays are not those that the new tokens will be written to."""
    for name in ("k", "v"):
        if getattr(cache, name).dtype != t.q.dtype:
            raise TypeError(
                f"The cache holds {getattr(cache, name).dtype}, but q, k and v are {t.q.dtype}; make it with"
                f" dtype={t.q.dtype}."
            )
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
