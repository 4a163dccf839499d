"""What a step of training is given, for tests."""

import jax
import jax.numpy as jnp

from posenc.lab.train.batches import batches_of, draw_sizes
from posenc.lab.train.lanes import Arrangement


def given_at(cell, seed, n):
    """The batch of a seed at step n of a resolved run, and the shapes that the step cuts it to."""
    draws = draw_sizes(cell.batching.sizes, 1, jnp.full(1, seed, jnp.uint32), jnp.int32(n))
    given = batches_of(cell.batching, draws, Arrangement("map", 1)).reading(cell.step.coordinates)
    return jax.tree.map(lambda a: a[0, 0], given), cell.step.batches[int(draws.buckets[0])]
