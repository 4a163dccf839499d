"""A bias that depends on distance alone: one number for each distance, cut into tiles by reshape and never by gather.

Where no positions were passed, the distance of two tokens of one document is the difference of their indices, so all
scores of a head are a product plus a matrix that is constant along its diagonals (Toeplitz).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from posenc.compose import imply, merge, spread
from posenc.kernels.parting import drawn
from posenc.scheme import Scheme, Tile


def band(
    scheme: Scheme, params: tuple[Any, Any], gaps: Int[Array, " N"], place: PyTree, heads: int, dtype: Any
) -> Float[Array, "H N"]:
    """What the scheme adds to a score at each difference of indices, for every head: its own `score` of zeros.

    `place` is what was passed in the place of positions: drawn distances, or index differences where it is None.
    """
    layer, own = params
    distance, none = _distances(gaps, place, scheme), jnp.zeros(1, gaps.dtype)
    blank = jax.tree.map(lambda _: None, distance)

    def one(own, head):
        zeros = jnp.zeros((gaps.size, 1), dtype)
        tile = Tile(blank, blank, distance, zeros, 1.0, jnp.ones(zeros.shape, bool), gaps, none, head, heads)
        return scheme.score(merge(layer, own), zeros, tile)[:, 0]

    return jax.vmap(one)(own, jnp.arange(heads))


def toeplitz(w: Float[Array, "H N"], rows: int) -> Float[Array, "H rows cols"]:
    """The tile of `rows` queries whose entry (r, c) is w[r - c + cols - 1]; N = rows + cols - 1.

    A row of n numbers, repeated and cut again at n - 1, shifts by one from line to line. Its gradient is the sum along
    each diagonal, by the same reshapes read backwards.
    """
    heads, count = w.shape
    n, cols = count + 1, count + 1 - rows
    u = jnp.roll(jnp.pad(w[:, ::-1], ((0, 0), (0, 1))), 1 - rows, 1)
    return jnp.tile(u, (1, rows))[:, : rows * (n - 1)].reshape(heads, rows, n - 1)[:, :, :cols]


def _distances(gaps: Int[Array, " N"], place: PyTree, scheme: Scheme) -> PyTree:
    """The distance at each difference of indices, `[N, 1]` and maybe an axis, for each part of a chain."""
    at = spread(scheme, imply(scheme, gaps) if place is None else place)
    look = lambda a: a.between(gaps, jnp.zeros(1, gaps.dtype)) if drawn(a) else a[:, None]  # noqa: E731
    return jax.tree.map(look, at, is_leaf=drawn)
