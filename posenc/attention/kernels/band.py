"""A bias that depends on distance alone: one number for each distance, cut into tiles by reshape and never by gather.

Without passed positions, the distance of two tokens of one document is the difference of their indices. So all scores
of a head are a product plus a matrix that is constant along its diagonals (Toeplitz).
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from posenc.attention.kernels.form import Encoded, Form
from posenc.attention.kernels.parting import is_sampled_distance, varying
from posenc.core.compose import imply, merge, spread
from posenc.core.scheme import Scheme, Tile
from posenc.numerics.precision import widened

STRIP = 16
"""Lines of a tile that are made, or added up, at once."""


def is_banded(form: Form, encoded: Encoded) -> bool:
    """Tell whether the scheme adds one number for each head and difference of indices to a score."""
    position = jax.tree.leaves(encoded.query.position, is_leaf=is_sampled_distance)
    by_index = form.implied or all(map(is_sampled_distance, position))
    return form.by_distance and by_index and form.scheme.reads == "distance"


def band(form: Form, encoded: Encoded, gaps: Int[Array, " N"], heads: Int[Array, " H"]) -> Float[Array, "H N"]:
    """Return the addition to a score at each difference of indices, for these heads: the scheme's own `score` of
    zeros."""
    scheme, (layer, head_params) = form.scheme, form.params
    position = None if form.implied else encoded.query.position
    distance, none = _distances(gaps, position, scheme), jnp.zeros(1, gaps.dtype)
    blank = jax.tree.map(lambda _: None, distance)
    zeros = jnp.zeros((gaps.size, 1), widened(encoded.q.dtype))

    def score_head(own, head):
        def score(s, distance, qi, ki):
            tile = Tile(blank, blank, distance, s, 1.0, jnp.ones(s.shape, bool), qi, ki, head, form.heads)
            return scheme.score(merge(layer, own), s, tile)

        # in a column a hook that gives one column of many would look right
        wide = jax.tree.map(lambda d: jax.ShapeDtypeStruct((2, 3, *d.shape[2:]), d.dtype), distance)
        of = lambda *shape: jax.ShapeDtypeStruct(shape, gaps.dtype)  # noqa: E731
        jax.eval_shape(score, jax.ShapeDtypeStruct((2, 3), zeros.dtype), wide, of(2), of(3))
        return score(zeros, distance, gaps, none)[:, 0]

    return jax.vmap(score_head)(head_params, heads)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def toeplitz(w: Float[Array, "H N"], rows: int) -> Float[Array, "H rows cols"]:
    """The tile of `rows` queries whose entry (r, c) is w[r - c + cols - 1]; N = rows + cols - 1.

    A row of n numbers, repeated and cut again at n - 1, shifts by one from line to line. That makes a strip of a few
    lines, as wide as the band; each strip of the tile is a part of it.
    """
    return _lines(w, rows)


def diagonals(s: Float[Array, "H rows cols"]) -> Float[Array, "H N"]:
    """The sum along each diagonal: the gradient of `toeplitz`, and the same steps in reverse."""
    heads, rows, cols = s.shape
    high = _strip(rows)

    def add(n: Array, total: Array) -> Array:
        at = rows - (n + 1) * high
        new = jax.lax.dynamic_slice_in_dim(total, at, cols, 2) + jax.lax.dynamic_slice_in_dim(s, n * high, high, 1)
        return jax.lax.dynamic_update_slice_in_dim(total, new, at, 2)

    strip = varying(jnp.zeros((heads, high, rows - high + cols), s.dtype), s)
    strip = jax.lax.fori_loop(0, rows // high, add, strip)
    n = high + strip.shape[-1]
    lines = jnp.pad(strip[:, :, ::-1], ((0, 0), (0, 0), (0, high))).reshape(heads, high * n)
    return lines[:, : high * (n - 1)].reshape(heads, high, n - 1).sum(1)


def _lines(w: Float[Array, "H N"], rows: int) -> Float[Array, "H rows cols"]:
    heads, count = w.shape
    n, cols, high = count + 1, count + 1 - rows, _strip(rows)
    u = jnp.roll(jnp.pad(w[:, ::-1], ((0, 0), (0, 1))), 1 - high, 1)
    lines = jnp.broadcast_to(u[:, None], (heads, high, n)).reshape(heads, high * n)
    strip = lines[:, : high * (n - 1)].reshape(heads, high, n - 1)
    return jnp.concatenate([strip[:, :, at : at + cols] for at in range(rows - high, -1, -high)], 1)


def _strip(rows: int) -> int:
    """How many lines are made at once: a tile that is not a multiple of them is made whole."""
    return rows if rows % STRIP else STRIP


def _kept(w: Float[Array, "H N"], rows: int) -> tuple[Array, None]:
    return _lines(w, rows), None


def _pulled(rows: int, kept: None, s: Float[Array, "H rows cols"]) -> tuple[Array]:
    return (diagonals(s),)


toeplitz.defvjp(_kept, _pulled)


def _distances(gaps: Int[Array, " N"], position: PyTree, scheme: Scheme) -> PyTree:
    """The distance at each difference of indices, `[N, 1]` and maybe an axis, for each part of a chain."""
    at = spread(scheme, imply(scheme, gaps) if position is None else position)
    of = lambda a: a.between(gaps, jnp.zeros(1, gaps.dtype)) if is_sampled_distance(a) else a[:, None]  # noqa: E731
    return jax.tree.map(of, at, is_leaf=is_sampled_distance)
