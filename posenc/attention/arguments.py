"""What attention is given, checked once: shapes, kinds and values, in one sentence each, before anything is traced."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from posenc.attention.tokens import Tokens
from posenc.core.compose import axes
from posenc.core.distances import Distances
from posenc.core.masks import documents
from posenc.core.scheme import Scheme
from posenc.core.shapes import label


def array(name: str, a: Any) -> Array:
    """An array as it was given: jax would make float32 of float64 in silence."""
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


def tokens(name: str, a: Any, lead: tuple[int, ...], length: int, axes: Any, whole: bool) -> Any:
    """Numbers per token, of at least 32 bits: `[L]` for all sequences alike or `[..., L]`; a tuple of such.

    They are `whole` where they name documents.
    """
    if a is None:
        return None
    if isinstance(a, Distances):
        return Distances(*(tokens(name, part, lead, length, axes, whole) for part in (a.past, a.future)))
    if isinstance(a, tuple):
        if not isinstance(axes, tuple) or len(axes) != len(a):
            parts = f"a sum of {len(axes)} schemes" if isinstance(axes, tuple) else "what has no parts"
            raise ValueError(f"{name} is a tuple of {len(a)}, given to {parts}; give one array, or one for each part.")
        if any(part is None for part in a):
            raise TypeError(f"{name} has None for a part of the sum; give an array for each part, or None for all.")
        return tuple(tokens(name, part, lead, length, n, whole) for part, n in zip(a, axes, strict=True))
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

    Positions count from where a document began, so a later piece of it would be told the wrong ones.
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
        positions=tokens("positions", t.positions, lead, queries, axes(scheme), False),
        key_positions=tokens("key_positions", t.key_positions, lead, keys, axes(scheme), False),
        segments=tokens("segments", t.segments, lead, queries, 1, True),
        key_segments=tokens("key_segments", t.key_segments, lead, keys, 1, True),
    )
    own = [n for n in ("key_x", "key_positions", "key_segments") if getattr(t, n) is not None]
    if cached:
        if own or queries != keys:
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
    if own and not apart:
        both = [n for n in ("x", "positions", "segments") if getattr(t, f"key_{n}") is None]
        t, apart = t._replace(**{f"key_{n}": getattr(t, n) for n in both}), True
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
