"""What a scheme that reads features makes of them, hook by hook: every head of every sequence."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import posenc


@functools.partial(jax.jit, static_argnums=0)
def sides(scheme: Any, params: Any, x: Any, q: Any, k: Any) -> tuple[Any, jax.Array, jax.Array]:
    """What each token is told of itself, queries and keys, all of them `[batch, heads, length, …]`."""
    index, (_, heads, _, d) = jnp.arange(x.shape[1], dtype=jnp.int32), q.shape

    def one(p, head, x, q, k):
        c = _told(scheme, p, x, index, head, posenc.Dims(x.shape[-1], heads, d, len(x)))
        return c, scheme.query(p, q, c)[0], scheme.key(p, k, c)[0]

    return _each(one, params, x, q, k)


@functools.partial(jax.jit, static_argnums=0)
def bias(
    scheme: Any, params: Any, x: Any, queries: Any = None, keys: Any = None, k: Any = None, v: Any = None
) -> jax.Array:
    """What is added to the scores of queries that are zero, `[batch, heads, query, key]`, and 0 after each query.

    `x` belongs to the queries. They and the keys stand at 0, 1, … unless positions are given; then `score` may read
    nothing of the keys but these. Keys and values `[batch, length, heads, features]` are zero unless given.
    """
    heads = k.shape[2] if k is not None else len(jax.tree.leaves(params["heads"])[0])
    i = jnp.arange(x.shape[1], dtype=jnp.int32) if queries is None else queries
    j = i if keys is None else keys
    empty = lambda n: jnp.zeros((len(x), heads, n, 1), x.dtype)  # noqa: E731
    k, v = (empty(len(j)) if a is None else a.swapaxes(1, 2) for a in (k, v))

    def one(p, head, x, q, k, v):
        c = _told(scheme, p, x, i, head, posenc.Dims(x.shape[-1], heads, 1, len(x)))
        said, told = scheme.query(p, q, c)[1], scheme.pair(p, k, v, c if keys is None else None)[1]
        raw, seen = jnp.zeros((len(i), len(j)), x.dtype), j[None, :] <= i[:, None]
        tile = posenc.Tile(said, told, i[:, None] - j[None, :], raw, 1.0, seen, i, j, head, heads)
        return jnp.where(seen, scheme.score(p, raw, tile), 0)

    return _each(one, params, x, empty(len(i)), k, v)


def weights(attend: Any, v: np.ndarray) -> jax.Array:
    """Each key's weight is what comes out of values that are one at that key and zero elsewhere.

    `attend` takes values, `[batch, length, heads, features]`; the weights are `[batch, heads, query, key]`.
    """
    one = lambda hot: attend(jnp.broadcast_to(hot[None, :, None, None], v.shape))  # noqa: E731
    return jax.vmap(one)(jnp.eye(v.shape[1], dtype=v.dtype))[..., 0].transpose(1, 3, 2, 0)


def _each(one: Any, params: Any, x: Any, *tokens: Any) -> Any:
    """A function of one head's parameters, its number, and one sequence's features, queries, keys and more; of all."""
    every = jax.vmap(lambda own, *rest: one(params["layer"] | own, *rest), (0, 0, None, *(0 for _ in tokens)))
    return jax.vmap(lambda x, *ts: every(params["heads"], jnp.arange(ts[0].shape[0]), x, *ts))(x, *tokens)


def _told(scheme: Any, p: Any, x: Any, position: Any, head: Any, dims: posenc.Dims) -> Any:
    index = jnp.arange(len(x), dtype=jnp.int32)
    at = posenc.At(position, index, jnp.ones_like(index), index + 1, head, dims.heads)
    return scheme.locate(p, x, at, scheme.carry(dims))[0]
