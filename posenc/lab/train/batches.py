"""The batches of a segment, made by a small program of the task alone: every scheme that trains on it shares them.

Sizes and keys are drawn first, by a program that tasks share. All batches are padded to the largest size, so that those
of a segment are one array, `[steps, batch, tokens]`. Examples do not depend on their padding. The step cuts each batch
to what its size needs.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from posenc.lab.compiling import Programs
from posenc.lab.models.interface import Inputs, inputs
from posenc.lab.spec.run import Run
from posenc.lab.tasks import Batch, Task
from posenc.lab.tasks.examples import batch_shapes, pad_tokens, round_length
from posenc.lab.tasks.measure import train_key
from posenc.lab.train.lanes import Arrangement, lanes
from posenc.lab.train.sizes import StepSizes


class Examples(NamedTuple):
    """The part of a task's batch that a step reads."""

    inputs: Inputs
    targets: Int[Array, "B T"]
    weight: Float[Array, "B T"]

    @classmethod
    def of(cls, batch: Batch) -> Examples:
        return cls(inputs(batch), batch.targets, batch.weight)

    def reading(self, names: tuple[str, ...]) -> Examples:
        """Return the examples with only these coordinates of the task."""
        return self._replace(inputs=self.inputs.reading(names))


class Batching(NamedTuple):
    """Settings that decide the batches of a run, apart from the seed."""

    task: Task
    sizes: StepSizes

    @classmethod
    def of(cls, run: Run, task: Task) -> Batching:
        """That of a run with nothing left open."""
        return cls(task, StepSizes.of(run, task))

    def shapes(self, sampled: bool = False) -> tuple[Examples, ...]:
        """The shapes of a batch of each bucket, as padding leaves them.

        Where positions are `sampled`, for as many tokens as a batch has, a longest batch of a multiple of 4 up to 32 is
        left as it is, as it was before these were padded: other tokens would draw other positions.
        """

        def padded(a: Any, longest: Any) -> Any:
            tokens, most = round_length(a.shape[-1]), longest.shape[-1]
            if sampled and most % 4 == 0 and most <= 32:
                tokens = min(tokens, most)
            return jax.ShapeDtypeStruct((*a.shape[:-1], tokens), a.dtype)

        made = [Examples.of(batch_shapes(self.task, self.sizes.batch, edge)) for edge in self.sizes.edges]
        return tuple(jax.tree.map(padded, shape, made[-1]) for shape in made)

    def size_in_bytes(self) -> int:
        """Bytes of the largest batch."""
        return sum(a.size * a.dtype.itemsize for a in jax.tree.leaves(self.shapes()[-1]))


class Draws(NamedTuple):
    """Draws for the batches of a segment that do not depend on their task."""

    keys: UInt32[Array, "lanes stride 2"]
    """The data of a key for each step."""
    sizes: Array
    """`[stride]`, or `[lanes, stride, batch]` where each example has its own."""
    buckets: Int[Array, " stride"]


@functools.partial(Programs, static=2)
def draw_sizes(sizes: StepSizes, stride: int, seeds: UInt32[Array, " lanes"], first: Int[Array, ""]) -> Draws:
    """The sizes and keys of the `stride` steps from `first` on."""
    n = first + jnp.arange(stride, dtype=jnp.int32)
    keys = jax.vmap(lambda seed: jax.vmap(lambda n: train_key(seed, sizes.turn(n)))(n))(seeds)
    of = lambda seed: jax.vmap(lambda n: sizes.size(seed, n))(n)  # noqa: E731
    step_sizes = jax.vmap(of)(seeds) if sizes.lengths == "example" else of(jnp.uint32(0))
    return Draws(jax.random.key_data(keys), step_sizes, jax.vmap(sizes.bucket)(n))


@functools.partial(Programs, static=4)
def make_batches(
    task: Task, batch: int, room: int, arrangement: Arrangement, keys: Array, sizes: Array, data: Any = None
) -> Examples:
    """The batches of each lane, padded as size `room` needs: `[lanes, stride, batch, tokens]`."""

    def make_lane(keys: Array, sizes: Array, data: Any) -> Examples:
        sample = functools.partial(task.sample, batch=batch, n_max=room, data=data)
        keys = jax.random.wrap_key_data(keys)
        return jax.lax.map(lambda now: pad_tokens(Examples.of(sample(*now))), (keys, sizes))

    return lanes(make_lane, arrangement, 1 + (sizes.ndim == 1))(keys, sizes, data)


def batches_of(batching: Batching, draws: Draws, arrangement: Arrangement) -> Examples:
    """The batches that were drawn."""
    task, sizes = batching
    data = task.load_part("train")
    return make_batches(task, sizes.batch, sizes.edges[-1], arrangement, draws.keys, draws.sizes, data)


def cut(batch: Examples, shapes: Any) -> Examples:
    """A batch without padding that its size does not need; `shapes` are those of its leaves."""
    leaves, tree = jax.tree.flatten(batch)
    return jax.tree.unflatten(tree, [a[tuple(map(slice, shape))] for a, shape in zip(leaves, shapes, strict=True)])
