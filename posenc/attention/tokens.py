"""The tokens of one attention call: what was passed about each, in batches and one sequence at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from posenc.attention.kernels import Pairs
from posenc.core.compose import Shares, imply, parts, spread
from posenc.core.distances import Distances
from posenc.core.masks import since_start
from posenc.core.scheme import At, Dims, Scheme
from posenc.numerics.sizes import are_numbers


class Tokens(NamedTuple):
    """One sequence, or a batch of them: queries, keys, values, and facts passed about each. `None` is nothing."""

    q: Array
    k: Array
    v: Array
    x: Any = None
    key_x: Any = None
    positions: PyTree = None
    key_positions: PyTree = None
    segments: Any = None
    key_segments: Any = None
    pairs: Pairs = Pairs()


def numbered(t: Tokens) -> Tokens:
    """Return the tokens with segments as numbers: booleans become 1 for a token and 0 for padding."""
    number = lambda a: a if a is None or a.dtype != bool else a.astype(jnp.int32)  # noqa: E731
    return t._replace(segments=number(t.segments), key_segments=number(t.key_segments))


def describe(scheme: Scheme, index, segment, position, visible, heads, before: Any = 0, began: Any = 0) -> At:
    """Return what hooks read of each token. Without positions it is the index counted from the start of the token's
    document."""
    segments = jnp.ones_like(index) if segment is None else segment
    if position is None:
        position = index
        if segment is not None:
            position = since_start(index, segment, before, jnp.asarray(began, index.dtype))
        position = imply(scheme, position)
    return At(spread(scheme, position), index, segments, visible, jnp.int32(0), heads)


def placed(at: At, unplaced: int | None) -> tuple[At, Any]:
    """The tokens, those without a place at 0, and which these are; None where all have a place.

    The positions of the first scheme of a sum say it.
    """
    if unplaced is None:
        return at, None
    first = jax.tree.leaves(at.position)[0]
    without = _without(first, first.ndim > 1, unplaced)
    return at._replace(position=jax.tree.map(lambda a: _at_zero(a, a.ndim > 1, without), at.position)), without


def zeroed(scheme: Scheme, positions: PyTree, unplaced: int | None) -> PyTree:
    """The positions of all sequences, 0 where a token has no place; each share of the heads has a first scheme."""
    if unplaced is None or positions is None:
        return positions
    if isinstance(scheme, Shares) and isinstance(positions, tuple):
        of_shares = [
            (cut.scheme, cut.of_parts(positions)) for cut in scheme.cuts(sum(scheme.counts), sum(scheme.counts))
        ]
        return tuple(a for s, own in of_shares for a in _several(zeroed(s, own, unplaced)))
    each = [(a, s.axes > 1) for a, s in zip(_several(positions), parts(scheme), strict=False)]
    without = _without(*each[0], unplaced)
    made = tuple(_at_zero(a, wide, without) for a, wide in each)
    return made if isinstance(positions, tuple) else made[0]


def _several(positions: PyTree) -> tuple[Any, ...]:
    return positions if isinstance(positions, tuple) else (positions,)


def _without(first: Any, wide: bool, unplaced: int) -> Any:
    """Tell of each token whether it has no place; `wide` says that a position has a last axis."""
    same = first == unplaced
    return same.all(-1) if wide else same


def _at_zero(a: Any, wide: bool, without: Any) -> Any:
    """Positions, 0 for tokens without a place; NumPy's stay NumPy's."""
    library = np if isinstance(a, np.ndarray) and isinstance(without, np.ndarray) else jnp
    return library.where(without[..., None] if wide else without, np.zeros((), a.dtype), a)


def began(counts: bool, index: Any, segment: Any, before: Any = 0, start: Any = 0) -> Any:
    """The index at which each token's document began; None unless the mask counts from there."""
    if not counts:
        return None
    if segment is None:
        return jnp.zeros_like(index)
    return index - since_start(index, segment, before, jnp.asarray(start, index.dtype)).astype(index.dtype)


def zero_padding(t: Tokens) -> Tokens:
    """Return the tokens with padding set to zero: a weight of 0 times NaN is NaN, so padding must not hold any."""

    def zeroed(a, segments):
        return a if a is None or segments is None else jnp.where((segments > 0).reshape(-1, *[1] * (a.ndim - 1)), a, 0)

    q, x = zeroed(t.q, t.segments), zeroed(t.x, t.segments)
    k, v, key_x = (zeroed(a, t.key_segments) for a in (t.k, t.v, t.key_x))
    return t._replace(q=q, x=x, k=k, v=v, key_x=key_x)


def sizes(t: Tokens) -> Dims:
    """The sizes of one sequence, for the carry before its first token."""
    width = t.q.shape[1] * t.q.shape[2] if t.x is None else t.x.shape[-1]
    trained = max(t.k.shape[0], 1) if are_numbers(t.k.shape[0]) else 1  # a carry does not depend on it
    return Dims(width, t.q.shape[1], t.q.shape[2], trained, key_heads=t.k.shape[1])


def ranks(axes: Any) -> Any:
    """How many array axes the positions of one sequence have."""
    return tuple(ranks(n) for n in axes) if isinstance(axes, tuple) else 1 if axes == 1 else 2


def fold(a: Any, lead: tuple[int, ...], tail: Any) -> tuple[Any, Any]:
    """An array with its batch axes as one, and the axis to map: none where all sequences share it."""
    if a is None:
        return None, None
    if isinstance(a, tuple):
        make = getattr(type(a), "_make", tuple)  # a tuple with names keeps them
        pairs = [fold(part, lead, n) for part, n in zip(a, tail, strict=True)]
        return make(p for p, _ in pairs), make(n for _, n in pairs)
    if isinstance(a, Distances):
        (past, past_axis), (future, future_axis) = (fold(part, lead, tail) for part in (a.past, a.future))
        return Distances(past, future), Distances(past_axis, future_axis)
    if a.ndim == jax.tree.leaves(tail)[0]:
        return a, None
    return a.reshape(-1, *a.shape[len(lead) :]), 0


def fold_tokens(t: Tokens, lead: tuple[int, ...], axes: Any) -> tuple[Tokens, Tokens]:
    """`fold` for everything about tokens."""
    place = ranks(axes)
    pairs = Pairs._make([0, 2, 1])  # prefix, allowed, seed
    return fold(t, lead, Tokens._make([3, 3, 3, 2, 2, place, place, 1, 1, pairs]))
