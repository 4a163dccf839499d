"""The batches of a segment, made by a small program of the task alone: every scheme that trains on it shares them.

A batch is drawn at the padded size of its bucket, and then padded to that of the largest, so that the batches of a
segment are one array, `[steps, batch, tokens]`; the step cuts them to what their bucket takes.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32

from posenc.lab.models.interface import Inputs, inputs
from posenc.lab.spec.run import Run
from posenc.lab.tasks import Batch, Task
from posenc.lab.tasks.measure import train_key


class Examples(NamedTuple):
    """What a step reads of a task's batch."""

    inputs: Inputs
    targets: Int[Array, "B T"]
    weight: Float[Array, "B T"]

    @classmethod
    def of(cls, batch: Batch) -> Examples:
        return cls(inputs(batch), batch.targets, batch.weight)


class Batching(NamedTuple):
    """What decides the batches of a run, apart from the seed."""

    task: Task
    batch: int
    shortest: int
    length: int
    buckets: int
    lengths: str
    uniform: str
    dataset: int | None

    @classmethod
    def of(cls, run: Run, task: Task) -> Batching:
        """That of a run with nothing left open."""
        return cls(task, *(getattr(run, name) for name in cls._fields[1:]))

    @property
    def edges(self) -> tuple[int, ...]:
        """The padded sizes that sizes trained on fall into, the largest of each bucket."""
        span, n, below = self.length - self.shortest + 1, self.buckets, self.task.sizes.below
        return tuple(sorted({below(self.shortest - 1 + -(-span * (i + 1) // n)) for i in range(n)}))

    def turn(self, n: Int[Array, ""]) -> Int[Array, ""]:
        """The first step that sees what step n sees: n itself, or one of the few that a `dataset` fills."""
        return n if self.dataset is None else n % (self.dataset // self.batch)

    def drawn(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Int[Array, "*shape"]:
        """Sizes at random. Where the task lacks a size, the one below it stands for it."""
        task = self.task
        if self.uniform == "sizes":
            return task.sizes.below(jax.random.randint(key, shape, self.shortest, self.length + 1))
        legal = [n for n in range(self.shortest, self.length + 1) if task.sizes.has(n)]
        ways = np.array([task.ways(n) for n in legal], np.float64)
        return jax.random.choice(
            key, jnp.asarray(legal, jnp.int32), shape, p=jnp.asarray(ways / ways.sum(), jnp.float32)
        )

    def size(self, seed: UInt32[Array, ""], n: Int[Array, ""]) -> Int[Array, "*batch"]:
        """The size of a step, or of each of its examples, drawn from the step alone unless each has its own: trials
        that meet the same lengths differ by less noise."""
        key = jax.random.fold_in(jax.random.key(self.length), self.turn(n))
        if self.lengths == "example":
            return self.drawn(jax.random.fold_in(key, seed), (self.batch,))
        return self.drawn(key, ())

    def bucket(self, n: Int[Array, ""]) -> Int[Array, ""]:
        """Which of `edges` the batch of a step is padded to, whatever the seed."""
        if self.lengths == "example":
            return jnp.int32(len(self.edges) - 1)
        return jnp.searchsorted(jnp.asarray(self.edges), self.size(jnp.uint32(0), n)).astype(jnp.int32)

    def sample(self, edge: int, seed: UInt32[Array, ""], n: Int[Array, ""]) -> Examples:
        """The batch of a step, padded to a size."""
        key, size = train_key(seed, self.turn(n)), self.size(seed, n)
        return Examples.of(self.task.sample(key, size, batch=self.batch, n_max=edge))

    def shapes(self) -> tuple[Examples, ...]:
        """The shapes of a batch of each bucket, as the step takes it."""
        sample = lambda edge: jax.eval_shape(functools.partial(self.sample, edge), jnp.uint32(0), jnp.int32(0))  # noqa: E731
        most = self.task.tokens(self.edges[-1])
        short = lambda a: jax.ShapeDtypeStruct((*a.shape[:-1], min(rounded(a.shape[-1]), most)), a.dtype)  # noqa: E731
        return tuple(jax.tree.map(short, sample(edge)) for edge in self.edges)

    def size_in_bytes(self) -> int:
        """Bytes of the largest batch."""
        return sum(a.size * a.dtype.itemsize for a in jax.tree.leaves(self.shapes()[-1]))


def rounded(tokens: int) -> int:
    """A length that is at least this one, and one above a multiple of 4: tasks differ by a slot or two, and then have
    one program."""
    return -(-(tokens - 1) // 4) * 4 + 1


def padded(given: Any, shapes: Any) -> Any:
    """Arrays with zeros at the end of each axis, up to these shapes."""
    pad = lambda a, to: jnp.pad(a, [(0, n - m) for m, n in zip(a.shape, to.shape, strict=True)])  # noqa: E731
    return jax.tree.map(pad, given, shapes)


def buckets(batching: Batching, stride: int, first: Int[Array, ""]) -> Int[Array, " stride"]:
    """The bucket of each step from `first` on."""
    return jax.vmap(batching.bucket)(first + jnp.arange(stride, dtype=jnp.int32))


def segment_batches(batching: Batching, stride: int, seed: UInt32[Array, ""], first: Int[Array, ""]) -> Examples:
    """The batches of one trial in the `stride` steps from `first` on."""
    *_, largest = batching.shapes()

    def at(n: Int[Array, ""]) -> Examples:
        branches = [lambda n, edge=edge: padded(batching.sample(edge, seed, n), largest) for edge in batching.edges]
        return jax.lax.switch(batching.bucket(n), branches, n)

    return jax.lax.map(at, first + jnp.arange(stride, dtype=jnp.int32))


def cut(given: Examples, shapes: Any) -> Examples:
    """A batch without what `segment_batches` padded; `shapes` are those of its leaves."""
    leaves, tree = jax.tree.flatten(given)
    return jax.tree.unflatten(tree, [a[tuple(map(slice, shape))] for a, shape in zip(leaves, shapes, strict=True)])
