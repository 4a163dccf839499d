"""Paths in a tree whose nodes are numbered breadth first: node v > 0 is child (v - 1) mod b of node ⌊(v - 1) / b⌋.

The root is 0, and b the number of children of each node. No tree is stored: parents are computed from the numbers.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from posenc.numerics.orthogonal import turns


def along_path(x: Float[Array, "L d"], node: Int[Array, " L"], generator: Float[Array, "b d d"]) -> Float[Array, "L d"]:
    """Each x times the transposed matrix exp(S) of every step from the root to its node, the last step first.

    Each kind of child has its generator S. NaN for nodes below 0, which do not exist.
    """
    branching = len(generator)
    steps = jax.vmap(lambda a: turns(a, jnp.ones(1, a.dtype))[0])(generator)

    def up(carry, _):
        x, node = carry
        products = jnp.einsum("lc,bcd->bld", x, steps, precision="highest")  # Wᵀ x for each kind of child
        child = ((node - 1) % branching)[None, :, None]
        moved = jnp.take_along_axis(products, child, 0)[0]
        return (jnp.where((node > 0)[:, None], moved, x), _parent(node, branching)), None

    (x, _), _ = jax.lax.scan(up, (x, node), None, _levels(node, branching))
    return jnp.where((node < 0)[:, None], jnp.nan, x)


def steps_between(i: Int[Array, " Q"], j: Int[Array, " K"], branching: int) -> Int[Array, "Q K"]:
    """The number of steps from each node i to each node j, through their last common ancestor.

    Of two nodes the one with the larger number is never an ancestor of the other, so that one moves up.
    """
    shape = i.shape[0], j.shape[0]

    def up(carry):
        a, b, steps = carry
        return jnp.where(a > b, _parent(a, branching), a), jnp.where(b > a, _parent(b, branching), b), steps + (a != b)

    i, j = (jnp.maximum(a, 0) for a in (i, j))  # a number below 0 would climb for ever
    start = jnp.broadcast_to(i[:, None], shape), jnp.broadcast_to(j[None, :], shape), jnp.zeros(shape, jnp.int32)
    return jax.lax.while_loop(lambda carry: (carry[0] != carry[1]).any(), up, start)[2]


def _parent(node: Int[Array, ...], branching: int) -> Int[Array, ...]:
    return jnp.where(node > 0, (node - 1) // branching, 0)


def _levels(node: Array, branching: int) -> int:
    """The depth of the deepest node that this integer type can number."""
    last, levels = int(jnp.iinfo(node.dtype).max), 0
    while last > 0:
        last, levels = (last - 1) // branching, levels + 1
    return levels
