"""The way from a golden case to posenc: scores and outputs by the hooks, with gradients for a given cotangent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import posenc


def scheme(text: str, **dims: Any) -> Any:
    """The scheme of a name, its open settings filled."""
    sizes = {"width": 1, "heads": 1, "head": 1, "trained": 1} | dims
    return posenc.bind(posenc.parse(text), posenc.Dims(**sizes))


def scores(
    scheme: Any, params: Any, q: Any, k: Any, *, positions: Any = None, key_positions: Any = None, scale: Any = None
) -> jax.Array:
    """The scores of one sequence, `[H, Q, K]`, before any mask: the hooks query, key and score on `[L, H, d]`.

    Keys stand at 0, 1, … and queries at the last of them, unless positions are given. Keys of all heads are given.
    """
    (queries, heads, d), keys = q.shape, k.shape[0]
    j = jnp.arange(keys, dtype=jnp.int32) if key_positions is None else jnp.asarray(key_positions)
    i = j[keys - queries :] if positions is None else jnp.asarray(positions)
    qi, ki = jnp.arange(keys - queries, keys, dtype=jnp.int32), jnp.arange(keys, dtype=jnp.int32)
    scale = scheme.scale(d) if scale is None else scale

    def one(own, head, q, k):
        p = params["layer"] | own
        q, said = scheme.query(p, q, i)
        k, told = scheme.key(p, k, j)
        raw = q @ k.T * scale
        seen = jnp.ones(raw.shape, bool)
        tile = posenc.Tile(said, told, i[:, None] - j[None, :], raw, scale, seen, qi, ki, head, heads)
        return scheme.score(p, raw, tile)

    every = jnp.arange(heads)
    return jax.vmap(one, (0, 0, 1, 1))(params["heads"], every, jnp.asarray(q), jnp.asarray(k))


def bias(scheme: Any, params: Any, heads: int, queries: int, keys: int, dtype: Any = None, **where: Any) -> jax.Array:
    """What is added to the scores, `[H, Q, K]`: the score of empty queries and keys."""
    q, k = jnp.zeros((queries, heads, 1), dtype or float), jnp.zeros((keys, heads, 1), dtype or float)
    return scores(scheme, params, q, k, **where)


def gradients(f: Callable[..., jax.Array], cotangent: np.ndarray, *given: Any) -> tuple[Any, ...]:
    """The gradients of `sum(f(*given) * cotangent)` with respect to everything given."""
    every = tuple(range(len(given)))
    return jax.grad(lambda *xs: (f(*xs) * cotangent).sum(), every)(*jax.tree.map(jnp.asarray, given))
