"""What attention is given, checked once: shapes, kinds and values, in one sentence each, before anything is traced."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from posenc.cache import Cache
from posenc.compose import Chain, Placed, Windowed
from posenc.masks import Window
from posenc.scheme import Scheme


class Tokens(NamedTuple):
    """One sequence, or a batch of them: queries, keys, and what was passed about each; `None` where nothing was."""

    q: Array
    k: Array
    v: Array
    x: Any = None
    key_x: Any = None
    positions: PyTree = None
    key_positions: PyTree = None
    segments: Any = None
    key_segments: Any = None


def placed(scheme: Any) -> bool:
    """Whether any part of a scheme has coordinates of its own."""
    if isinstance(scheme, Chain):
        return any(placed(s) for s in scheme.parts)
    return placed(scheme.scheme) if isinstance(scheme, Windowed) else isinstance(scheme, Placed)


def check_arrays(q: Array, k: Array, v: Array) -> None:
    """Refuse queries, keys and values that do not fit together."""
    shown = f"q {jnp.shape(q)} {q.dtype}, k {jnp.shape(k)} {k.dtype}, v {jnp.shape(v)} {v.dtype}"
    if not q.ndim == k.ndim == v.ndim or q.ndim < 3:
        raise ValueError(f"Queries, keys and values are [..., length, heads, features] alike; given were {shown}.")
    if not (q.dtype == k.dtype == v.dtype and jnp.issubdtype(q.dtype, jnp.floating)):
        raise TypeError(f"Queries, keys and values share one floating type; given were {shown}.")
    if q.shape[:-3] != k.shape[:-3] or k.shape[:-1] != v.shape[:-1] or q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"Batch, key length, key heads and features of queries and keys must agree; given were {shown}."
        )
    if not q.shape[-2] or not k.shape[-2] or q.shape[-2] % k.shape[-2]:
        raise ValueError(f"{k.shape[-2]} key heads do not divide {q.shape[-2]} query heads; given were {shown}.")


def check_features(name: str, x: Any, lead: tuple[int, ...], length: int) -> Any:
    """Features of tokens, `[..., length, width]`."""
    x = None if x is None else jnp.asarray(x)
    if x is not None and (x.ndim != len(lead) + 2 or x.shape[:-1] != (*lead, length)):
        raise ValueError(
            f"{name} has the shape {x.shape}; it is {(*lead, length)} and a width, as queries or keys are."
        )
    return x


def tokens(name: str, a: Any, lead: tuple[int, ...], length: int, axes: int, whole: bool) -> Any:
    """Numbers per token, of at least 32 bits: `[L]` for all sequences alike or `[..., L]`; a tuple of such."""
    if a is None:
        return None
    if isinstance(a, tuple):
        return tuple(tokens(name, part, lead, length, axes, whole) for part in a)
    a = a if isinstance(a, np.ndarray) else jnp.asarray(a)  # NumPy's values can be checked inside jit too
    tail = (length,) if axes == 1 or a.ndim in (1, len(lead) + 1) else (length, axes)
    if a.shape not in (tail, (*lead, *tail)):
        raise ValueError(f"{name} has the shape {a.shape}; it is {tail} or {(*lead, *tail)}, a number for each token.")
    if axes > 1 and tail == (length,):
        raise ValueError(
            f"{name} has one number for each token, but this scheme has {axes} axes; give {(length, axes)}."
        )
    if jnp.issubdtype(a.dtype, jnp.integer):
        return a if a.dtype in (jnp.int32, jnp.int64) else a.astype(jnp.int32)
    if whole or not jnp.issubdtype(a.dtype, jnp.floating):
        raise TypeError(f"{name} is of type {a.dtype}; it holds whole numbers{'' if whole else ' or real ones'}.")
    return a.astype(jnp.promote_types(a.dtype, jnp.float32))


def check_tokens(t: Tokens, scheme: Scheme, query_start: Any, cached: bool) -> Tokens:
    """Everything that was passed about tokens, in its final type, or a refusal."""
    lead, queries, keys = t.q.shape[:-3], t.q.shape[-3], t.k.shape[-3]
    t = t._replace(
        x=check_features("x", t.x, lead, queries),
        key_x=check_features("key_x", t.key_x, lead, keys),
        positions=tokens("positions", t.positions, lead, queries, scheme.axes, False),
        key_positions=tokens("key_positions", t.key_positions, lead, keys, scheme.axes, False),
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
    return t


def fold(a: Any, lead: tuple[int, ...], tail: int) -> tuple[Any, Any]:
    """An array with its batch axes made one, and the axis to map: none where all sequences share it."""
    if a is None:
        return None, None
    if isinstance(a, tuple):
        pairs = [fold(part, lead, tail) for part in a]
        return tuple(p for p, _ in pairs), tuple(n for _, n in pairs)
    if a.ndim == tail:
        return a, None
    return a.reshape(-1, *a.shape[len(lead) :]), 0


def fold_tokens(t: Tokens, lead: tuple[int, ...], axes: int) -> tuple[Tokens, Tokens]:
    """`fold` for everything about tokens."""
    place = 1 if axes == 1 else 2
    pairs = [fold(a, lead, tail) for a, tail in zip(t, (3, 3, 3, 2, 2, place, place, 1, 1), strict=True)]
    return Tokens(*(a for a, _ in pairs)), Tokens(*(n for _, n in pairs))


def check_scheme(scheme: Scheme, given: Any, params: Any, window: Window, positions: Any, x: Any) -> None:
    """Refuse what this scheme cannot do."""
    if scheme.causal_only and not window.causal:
        raise ValueError(f"{label(scheme)} is causal only: {scheme.causal_only}; use mask='causal'.")
    if scheme.contextual and x is None:
        raise ValueError(f"{label(scheme)} reads the features of tokens; pass x, the input of this attention.")
    if positions is None and placed(given):
        raise ValueError("This scheme has coordinates; draw positions with posenc.place and pass them.")
    if isinstance(params, tuple) != isinstance(scheme, Chain):
        raise TypeError("The parameters are not those of this scheme; make them with posenc.init(scheme, key, dims).")


def check_cache(cache: Cache, t: Tokens, look: Window, query_start: Any) -> None:
    """Refuse a cache that is full, of another batch, or asked to see the future."""
    (rows, capacity), new = cache.segment.shape, t.q.shape[-3]
    if t.q.shape[:-3] != (rows,):
        raise ValueError(f"This cache is of a batch of {rows}; q, k and v have the batch axes {t.q.shape[:-3]}.")
    if not look.causal:
        raise ValueError("A cache serves decoding, which sees no future; use mask='causal' or posenc.Window(left, 0).")
    if query_start is not None:
        raise ValueError("With a cache, the first query stands where the cache ends; leave query_start out.")
    kinds = {a.dtype for a in jax.tree.leaves(t.positions)} - {a.dtype for a in jax.tree.leaves(cache.position)}
    if kinds:
        raise TypeError(
            f"Positions are {kinds.pop()}, the cache's are not; make it with posenc.Cache.empty(positions=...)."
        )
    length = concrete(cache.length)
    if length is not None and length + new > capacity:
        raise ValueError(
            f"The cache holds {int(length)} of {capacity} places and {new} more were given; make it larger."
        )


def concrete(a: Any) -> np.ndarray | None:
    """The values of an array, where they are known before tracing."""
    return None if isinstance(a, jax.core.Tracer) else np.asarray(a)


def label(scheme: Scheme) -> str:
    """A scheme's name for messages."""
    return " + ".join(label(s) for s in scheme.parts) if isinstance(scheme, Chain) else repr(scheme.name)
