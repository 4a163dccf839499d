"""The size of each step's batch, drawn from the step: trials that meet the same sizes differ by less noise."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray, UInt32

from posenc.lab.spec.run import Run
from posenc.lab.tasks import Task


class StepSizes(NamedTuple):
    """Facts that decide the sizes of a run; runs for which they are equal meet the same ones, whatever their task."""

    shortest: int
    length: int
    legal: tuple[int, ...]
    """The size that stands for each number from `shortest` to `length`: the number itself, or the legal one below."""
    ways: tuple[int, ...] | None
    """How many cases of the paper have each of the legal sizes; None where sizes are equally likely."""
    batch: int
    buckets: int
    lengths: str
    dataset: int | None

    @classmethod
    def of(cls, run: Run, task: Task) -> StepSizes:
        """Return the facts of a run with nothing left open."""
        legal = tuple(task.sizes.below(n) for n in range(run.shortest, run.length + 1))
        ways = None if run.uniform == "sizes" else tuple(task.ways(n) for n in dict.fromkeys(legal))
        return cls(run.shortest, run.length, legal, ways, run.batch, run.buckets, run.lengths, run.dataset)

    @property
    def edges(self) -> tuple[int, ...]:
        """The padded sizes that sizes trained on fall into, the largest of each bucket.

        Buckets hold as many sizes each, up to half a bucket: they end where a whole number of halves of `length` over
        `buckets` does, so that tasks whose shortest sizes differ by little have the same.
        """
        span, n, most = len(self.legal), self.buckets, self.length
        even = (self.shortest - 1 + -(-span * (i + 1) // n) for i in range(n))
        ends = (round(end * 2 * n / most) * most // (2 * n) for end in even)
        return tuple(sorted({self.legal[max(end - self.shortest, 0)] for end in ends}))

    def turn(self, n: Int[Array, ""]) -> Int[Array, ""]:
        """The first step that sees what step n sees: n itself, or one of the few that a `dataset` fills."""
        return n if self.dataset is None else n % (self.dataset // self.batch)

    def sample(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Int[Array, "*shape"]:
        """Sizes at random."""
        if self.ways is None:
            sizes = jax.random.randint(key, shape, self.shortest, self.length + 1)
            return jnp.asarray(self.legal, jnp.int32)[sizes - self.shortest]
        distinct, ways = tuple(dict.fromkeys(self.legal)), np.array(self.ways, np.float64)
        share = jnp.asarray(ways / ways.sum(), jnp.float32)
        return jax.random.choice(key, jnp.asarray(distinct, jnp.int32), shape, p=share)

    def size(self, seed: UInt32[Array, ""], n: Int[Array, ""]) -> Int[Array, "*batch"]:
        """The size of a step, or of each of its examples: only the latter depend on the seed."""
        key = jax.random.fold_in(jax.random.key(self.length), self.turn(n))
        if self.lengths == "example":
            return self.sample(jax.random.fold_in(key, seed), (self.batch,))
        return self.sample(key, ())

    def bucket(self, n: Int[Array, ""]) -> Int[Array, ""]:
        """Return the index in `edges` of the size that the batch of a step is cut to, whatever the seed."""
        if self.lengths == "example":
            return jnp.int32(len(self.edges) - 1)
        return jnp.searchsorted(jnp.asarray(self.edges), self.size(jnp.uint32(0), n)).astype(jnp.int32)
