"""Products of queries and keys whose features fade each at its own rate between the two, without overflow.

    s_ij = Σ_n q_in k_jn exp(P_in - P_jn),   P falls along a document, j ≤ i

Split into exp(P_i) · q and exp(-P_j) · k the factors overflow after a few hundred tokens. An anchor A is
the sums of a token between the two. Then exp(P_i - A) and exp(A - P_j) are at most 1. One product serves all queries
from that token on, and all keys up to it. So keys before all queries take one product. Queries that are the keys are
halved: the first half of the keys takes one product with the second half of the queries. Each half is halved again,
down to single tokens. All other queries go by blocks. Keys up to the first of a block take a product, and those within
it go pair by pair. Gradients compute each way again, since a switch would save what every way needs.
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
    by_blocks = lambda: _by_blocks(q, k, query_sums, key_sums, qi, ki)  # noqa: E731
    count, keys = q.shape[0], k.shape[0]
    if not are_numbers(count, keys) or count < min(BLOCK, keys):
        return by_blocks()
    ways = [by_blocks, lambda: _anchored(q, k, query_sums, key_sums)]
    way = (ki <= qi[0]).all().astype(jnp.int32)
    if count == keys:
        ways.append(lambda: _by_halves(q, k, query_sums, key_sums))
        way = jnp.where((ki == qi).all(), 2, way)
    return jax.lax.switch(way, ways)


@jax.checkpoint
def _anchored(
    q: Float[Array, "*batch Q d"], k: Float[Array, "*batch K d"], query_sums: Array, key_sums: Array
) -> Float[Array, "*batch Q K"]:
    """The products of queries with keys that all stand at the first query or before it."""
    anchor = jax.lax.stop_gradient(query_sums[..., :1, :])
    decayed = (k * jnp.exp(_falling(anchor - key_sums))).swapaxes(-1, -2)
    return product(q * jnp.exp(_falling(query_sums - anchor)), decayed)


@jax.checkpoint
def _by_halves(q: Float[Array, "L d"], k: Float[Array, "L d"], query_sums: Array, key_sums: Array) -> Array:
    """The square of queries that are the keys, filled up to a power of two of them."""
    count = q.shape[0]
    more = (1 << (count - 1).bit_length()) - count
    q, k, query_sums, key_sums = (jnp.pad(a, ((0, more), (0, 0)), "edge") for a in (q, k, query_sums, key_sums))
    cut = lambda a, size: a.reshape(-1, size, a.shape[-1])  # noqa: E731
    out, size = (q * k).sum(-1)[:, None, None], 1
    while size < count:
        late, early = (lambda a, size=size, n=n: cut(a, 2 * size)[:, n * size : (n + 1) * size] for n in (1, 0))
        low = _anchored(late(q), early(k), late(query_sums), early(key_sums))
        first, second = out[::2], out[1::2]
        rows = jnp.concatenate([first, jnp.zeros_like(first)], -1), jnp.concatenate([low, second], -1)
        out, size = jnp.concatenate(rows, 1), 2 * size
    return out[0, :count, :count]


def _by_blocks(
    q: Float[Array, "Q d"],
    k: Float[Array, "K d"],
    query_sums: Float[Array, "Q d"],
    key_sums: Float[Array, "K d"],
    qi: Int[Array, " Q"],
    ki: Int[Array, " K"],
) -> Float[Array, "Q K"]:
    """The products of queries and keys of any indices."""
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
