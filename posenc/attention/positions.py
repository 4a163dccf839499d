"""Facts about each token that a call may pass: positions, and the documents that segments number.

Values are checked if they are known before tracing; inside `jit` what they refuse gives NaN (`unknown`).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from posenc.attention.tokens import Tokens
from posenc.attention.unknown import farthest
from posenc.core.compose import SEVERAL, axes, imply, parts, spread
from posenc.core.distances import Distances, pasts
from posenc.core.masks import documents, since_start
from posenc.core.scheme import Scheme
from posenc.numerics.sizes import are_numbers
from posenc.numerics.token_numbers import concrete, exact


def numbers(name: str, a: Any) -> Any:
    """An array of NumPy or jax. NumPy's stay NumPy's: their values can be checked inside jit too."""
    if isinstance(a, jax.Array | np.ndarray):
        converted = a
    else:
        traced = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(a))
        try:
            converted = jnp.asarray(a) if traced else np.asarray(a)
        except (TypeError, ValueError):
            converted = None
    if converted is None or not (converted.dtype == bool or jnp.issubdtype(converted.dtype, jnp.number)):
        shown = repr(a) if a is None or isinstance(a, str) and len(a) < 20 else f"of type {type(a).__name__}"
        raise TypeError(f"{name} is {shown}; it is an array of numbers.")
    return converted


def per_token(name: str, a: Any, lead: tuple[int, ...], length: int, axes: Any, of_documents: bool) -> Any:
    """Return numbers per token, of at least 32 bits, `[L]` for all sequences or `[..., L]`. A tuple has one for each
    part.

    With `of_documents` they are the numbers of documents, or booleans, True where no padding is.
    """
    if a is None:
        return None
    if isinstance(a, Distances):
        return Distances(*(per_token(name, part, lead, length, axes, of_documents) for part in (a.past, a.future)))
    if isinstance(a, tuple):
        if not isinstance(axes, tuple) or len(axes) != len(a):
            parts = f"a sum of {len(axes)} schemes" if isinstance(axes, tuple) else "one scheme"
            raise ValueError(f"{name} is a tuple of {len(a)}, given to {parts}; give one array, or one for each part.")
        if any(part is None for part in a):
            raise TypeError(f"{name} has None for a part of the sum; give an array for each part, or None for all.")
        return tuple(per_token(name, part, lead, length, n, of_documents) for part, n in zip(a, axes, strict=True))
    if isinstance(axes, tuple):
        each = set(jax.tree.leaves(axes))
        if len(each) > 1:
            raise ValueError(f"The parts of this sum have {axes} axes; give {name} as a tuple, an array for each part.")
        if isinstance(a, list) and any(np.ndim(part) for part in a):
            raise TypeError(
                f"{name} is a list of {len(a)}, given to a sum; give a tuple with an array for each part, or one array."
            )
        axes = each.pop()
    a = numbers(name, a)
    tells_padding = of_documents and a.dtype == bool
    if not tells_padding and (of_documents and not jnp.issubdtype(a.dtype, jnp.integer) or not _real(a.dtype)):
        kinds = "documents' numbers, or True where no padding is" if of_documents else "whole numbers or real ones"
        raise TypeError(f"{name} is of type {a.dtype}; it holds {kinds}.")
    tail = (length,) if axes == 1 else (length, axes)
    if a.shape not in (tail, (*lead, *tail)):
        each = (
            "a number for each token"
            if axes == 1
            else f"{axes} numbers for each token, since this scheme has {axes} axes"
        )
        shapes = " or ".join(str(shape) for shape in dict.fromkeys((tail, (*lead, *tail))))
        raise ValueError(f"{name} has the shape {a.shape}; it is {shapes}, {each}.")
    if tells_padding:
        return a
    a = exact(name, a)
    if of_documents:
        check_documents(name, a)
    return a


def check_apart(scheme: Scheme, t: Tokens) -> None:
    """Refuse positions whose differences 32 bits do not hold; those of padding are left out.

    What is not known yet gives NaN where it does not fit: `posenc.attention.unknown`.
    """
    for name, segments in (("positions", t.segments), ("key_positions", t.key_segments)):
        real = None if segments is None else concrete(segments)
        for a, count in _each(scheme, getattr(t, name)):
            if concrete(a) is None or segments is not None and real is None:
                continue
            values = _concrete_positions(a, real, count)
            limit = farthest(values.dtype)
            if values.size and not np.abs(values.astype(float)).max() < limit:  # nan is not below it
                worst = values.min() if values.max() < limit else values.max()
                raise ValueError(
                    f"{name} holds {worst}; differences of positions fit and angles are exact between -{limit} and"
                    f" {limit}: give numbers between these."
                )


def _each(scheme: Scheme, positions: Any) -> list[tuple[Any, int]]:
    """Every array of the positions, with its number of axes."""
    if positions is None:
        return []
    each = spread(scheme, positions)
    pairs = zip(parts(scheme), each if isinstance(scheme, SEVERAL) else (each,), strict=True)
    return [(a, s.axes) for s, part in pairs for a in jax.tree.leaves(part)]


def _real(dtype: Any) -> bool:
    return jnp.issubdtype(dtype, jnp.integer) or jnp.issubdtype(dtype, jnp.floating)


def check_documents(name: str, segments: Any) -> None:
    """Refuse documents that come in two pieces, and numbers below 0, where the values are known.

    Positions count from where a document began, so a later piece would be counted from the wrong token.
    """
    values = concrete(segments)
    if values is None or not values.size:
        return
    if values.min() < 0:
        raise ValueError(f"{name} holds {values.min()}; a document is a number above 0, and padding is 0.")
    document = documents(values)
    pieces = np.diff(document, axis=-1, prepend=0) != 0
    ordered = np.sort(document, -1)
    names = np.diff(ordered, axis=-1, prepend=0) != 0
    if np.any(pieces.sum(-1) != names.sum(-1)):
        raise ValueError(f"{name} names a document again after another one; give each piece a number of its own.")


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
            positions = start + (np if are_numbers(count) else jnp).arange(count, dtype=np.int32)
            positions = positions if real is None else since_start(positions, real)
            positions = imply(scheme, positions)
        to_numpy = lambda a, count, real=real: _concrete_positions(a, real, count)  # noqa: E731
        scheme.check_positions(p, jax.tree.map(to_numpy, spread(scheme, pasts(positions)), axes(scheme)))


def _concrete_positions(positions: Any, segments: np.ndarray | None, axes: int) -> Any:
    """Positions as NumPy's where they are concrete, those of padding set to zero, which every scheme has."""
    if isinstance(positions, jax.core.Tracer):
        return positions
    positions = np.asarray(positions)
    if segments is None:
        return positions
    real = segments > 0
    return np.where(real if axes == 1 else real[..., None], positions, np.zeros((), positions.dtype))
