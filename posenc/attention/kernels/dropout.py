"""Weights that are dropped in training (Srivastava et al., 2014): the same ones whichever kernel asks.

The drop of a weight depends on the seed, the head and the indices of its two tokens alone. They are the counters of a
Threefry block cipher (Salmon et al., 2011). So a tile drops what the whole square drops there, the backward pass what
the forward pass dropped, and a cache what the whole sequence drops.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32


def seeds(key: Any, count: Any) -> UInt32[Array, "count 2"]:
    """A seed for each sequence of a batch."""
    seed = lambda n: jax.random.bits(jax.random.fold_in(key, n), (2,), jnp.uint32)  # noqa: E731
    return jax.vmap(seed)(jnp.arange(count))


def kept(
    rate: float, seed: UInt32[Array, " 2"], head: Any, qi: Int[Array, " Q"], ki: Int[Array, " K"]
) -> Float[Array, "Q K"]:
    """Return the factors of one head's weights: 0 if they are dropped, 1 / (1 - rate) if they are kept."""
    shape = qi.shape[0], ki.shape[0]
    of_head = _mixed(seed, jnp.reshape(head, (1,)), jnp.zeros(1))
    rows, columns = (jnp.broadcast_to(a, shape).reshape(-1) for a in (qi[:, None], ki[None, :]))
    bits = _mixed(of_head, rows, columns).reshape(2, *shape)[0]
    return jnp.where(bits >= jnp.uint32(rate * 2**32), jnp.float32(1 / (1 - rate)), 0.0)


def _mixed(seed: UInt32[Array, " 2"], first: Array, second: Array) -> UInt32[Array, " n"]:
    """Random bits for each pair of counters: first all of one kind, then as many more."""
    from jax.extend.random import threefry_2x32  # it imports Pallas, which attention without dropout does not need

    return threefry_2x32(seed, jnp.concatenate([first.astype(jnp.uint32), second.astype(jnp.uint32)]))
