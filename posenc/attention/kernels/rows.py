"""Attention in blocks of queries, each over all keys: for schemes that read whole rows of scores.

Rows do not depend on one another, so memory is a block of rows and not the square. Their scores are computed again for
the gradient.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from posenc.attention.kernels import dense
from posenc.attention.kernels.form import Encoded, Form, Side
from posenc.attention.kernels.parting import is_sampled_distance, join, lengthened, part
from posenc.numerics.sizes import are_numbers


def mix(form: Form, encoded: Encoded, block: int) -> Float[Array, "Q H d"]:
    """Every row of every head, `block` rows at a time."""
    count = encoded.q.shape[1]
    rows = min(block, count) if are_numbers(count) else block

    def cut(a: Array, axis: int) -> Array:
        a = lengthened(a, axis, rows)
        return jnp.moveaxis(a.reshape(*a.shape[:axis], -1, rows, *a.shape[axis + 1 :]), axis, 0)

    side = encoded.query
    lags, place = part(side.position, is_sampled_distance)
    of_heads = jax.tree.map(lambda a: cut(a, 1), (encoded.q, encoded.query_info))
    of_tokens = jax.tree.map(lambda a: cut(a, 0), (place, *side[1:], encoded.pairs.allowed))

    @jax.checkpoint
    def mix_rows(rows):
        (q, query_info), (place, *rest, allowed) = rows
        query = Side(join(lags, place), *rest)
        pairs = encoded.pairs._replace(allowed=allowed)
        return dense.square(form, encoded._replace(q=q, query_info=query_info, query=query, pairs=pairs))

    out = jax.lax.map(mix_rows, (of_heads, of_tokens)).swapaxes(1, 2)
    return out.reshape(-1, *out.shape[2:])[:count]
