"""Attention in blocks of queries, each over all keys: for schemes that look at whole rows of scores.

Rows do not depend on one another, so memory is a block of rows and not the square. Their scores are made anew for the
gradient.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from posenc.attention import sides
from posenc.attention.kernels import dense
from posenc.attention.kernels.pairs import Pairs
from posenc.attention.kernels.parting import drawn, join, lengthened, part
from posenc.core.scheme import Scheme


def mix(
    scheme: Scheme, params: tuple[Any, Any], q: Array, keys: sides.Keys, told: PyTree, pairs: Pairs, block: int
) -> Float[Array, "Q H d"]:
    """Every row of every head, `block` rows at a time."""
    asked, said = sides.ask(scheme, params, q, told)
    count = asked.shape[1]
    rows = min(block, count)

    def cut(a: Array, axis: int) -> Array:
        a = lengthened(a, axis, rows)
        return jnp.moveaxis(a.reshape(*a.shape[:axis], -1, rows, *a.shape[axis + 1 :]), axis, 0)

    lags, place = part(pairs.query.position, drawn)
    parts = jax.tree.map(lambda a: cut(a, 1), (asked, said))
    tokens = jax.tree.map(lambda a: cut(a, 0), (place, pairs.query.index, pairs.query.segment))

    @jax.checkpoint
    def some(part):
        (q, said), (place, index, segment) = part
        side = pairs.query._replace(position=join(lags, place), index=index, segment=segment)
        return dense.square(scheme, params, q, said, keys, pairs._replace(query=side))

    out = jax.lax.map(some, (parts, tokens)).swapaxes(1, 2)
    return sides.receive(scheme, params, out.reshape(-1, *out.shape[2:])[:count], told)
