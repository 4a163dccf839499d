"""The two products of attention, for all heads at once: the query heads of one key head are the rows of one matrix.

Written so, neither product nor its gradient is turned in memory, which costs as much as the product itself. Matrices of
few keys stay apart: there it is the joining of their rows that costs.
"""

from __future__ import annotations

from typing import Any

import jax
from jaxtyping import Array, Float

from posenc.numerics.sizes import are_numbers

FEW = 20
"""Keys up to which query heads stay apart: on a processor, 16 tokens then take three quarters of the time."""


def scores(q: Float[Array, "G R Q e"], k: Float[Array, "G K e"], exact: Any) -> Float[Array, "G R Q K"]:
    """Every query times every key."""
    return _with(q, k, 2, exact)


def mixed(weights: Float[Array, "G R Q K"], v: Float[Array, "G K d"], exact: Any) -> Float[Array, "G R Q d"]:
    """Values, mixed by weights."""
    return _with(weights.astype(v.dtype), v, 1, exact)


def gathered(q: Float[Array, "G R Q e"], weights: Float[Array, "G R Q K"], exact: Any) -> Float[Array, "G e K"]:
    """Rows of q, mixed by the columns of weights: the gradient of keys and of values, tokens last."""
    q, weights = (a.reshape(a.shape[0], -1, a.shape[-1]) for a in (q, weights.astype(q.dtype)))
    return jax.lax.dot_general(q, weights, (((1,), (1,)), ((0,), (0,))), preferred_element_type=exact)


def _with(a: Float[Array, "G R Q x"], b: Float[Array, "G K y"], axis: int, exact: Any) -> Float[Array, "G R Q z"]:
    """The product over the last axis of `a` and this axis of `b`."""
    keys = b.shape[1]
    rows = a if are_numbers(keys) and keys <= FEW else a.reshape(a.shape[0], -1, a.shape[-1])
    over = ((rows.ndim - 1,), (axis,)), ((0,), (0,))
    return jax.lax.dot_general(rows, b, over, preferred_element_type=exact).reshape(*a.shape[:3], -1)
