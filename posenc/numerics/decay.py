"""Products of queries and keys whose features fade each at its own rate between the two, without overflow.

    s_ij = Σ_n q_in k_jn exp(P_in - P_jn),   P falls along a document, j ≤ i

Split into exp(P_i) · q and exp(-P_j) · k the factors overflow after a few hundred tokens. So queries go by blocks, each
with the sums of its first token as an anchor A: exp(P_i - A) and exp(A - P_j) are at most 1 for keys up to that token.
Keys after it within the block, at most as many as the block has queries, are taken pair by pair.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from posenc.numerics.precision import product
from posenc.numerics.sizes import are_numbers, round_up

BLOCK = 32
"""Queries of a block."""
ROUNDING = 1.0
"""More than rounding adds to a difference of sums that is 0."""


def decayed(
    q: Float[Array, "Q d"],
    k: Float[Array, "K d"],
    query_sums: Float[Array, "Q d"],
    key_sums: Float[Array, "K d"],
    qi: Int[Array, " Q"],
    ki: Int[Array, " K"],
) -> Float[Array, "Q K"]:
    """The products, `[Q, K]`, in memory that grows with the scores and not with their features. Queries stand in the
    order of their indices; keys in any. Of keys after the query it is 0; between two documents it is finite and means
    nothing."""
    count = q.shape[0]
    rows = min(BLOCK, count) if are_numbers(count) else BLOCK

    def block(part: tuple[Array, Array, Array]) -> Array:
        q, sums, index = part
        anchor = jax.lax.stop_gradient(sums[0])[None]
        far = product(q * jnp.exp(_falling(sums - anchor)), (k * jnp.exp(_falling(anchor - key_sums))).T)
        here = index[0] + jnp.arange(rows, dtype=index.dtype)
        is_here = ki[None, :] == here[:, None]
        place = jnp.argmax(is_here, -1)
        apart = _falling(sums[:, None] - key_sums[place][None])
        near = (q[:, None] * k[place][None] * jnp.exp(apart)).sum(-1)
        scores = far.at[:, jnp.where(is_here.any(-1), place, k.shape[0])].set(near, mode="drop")
        return jnp.where(ki[None, :] <= index[:, None], scores, 0)

    parts = q, query_sums, qi
    if are_numbers(count) and count == rows:
        return block(parts)
    more = round_up(count, rows) - count
    cut = lambda a: jnp.concatenate([a, jnp.repeat(a[-1:], more, 0)]).reshape(-1, rows, *a.shape[1:])  # noqa: E731
    out = jax.lax.map(jax.checkpoint(block), tuple(map(cut, parts)))
    return out.reshape(-1, out.shape[-1])[:count]


def _falling(x: Float[Array, ...]) -> Float[Array, ...]:
    """x where a query may see it. There it is at most 0, but for the rounding of its sums, whose gradient must pass."""
    return jnp.where(x < ROUNDING, x, 0)
