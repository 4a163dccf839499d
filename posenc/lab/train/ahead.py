"""Compile the programs of a group before it trains, so that another group trains meanwhile.

Each part lowers its programs for the shapes that they will be called with, and compiles them; the call then finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import PyTree

from posenc.lab.spec.run import Knobs
from posenc.lab.tasks.examples import examples
from posenc.lab.train import evaluation
from posenc.lab.train.batches import draw_sizes, make_batches
from posenc.lab.train.lanes import Arrangement, sharding
from posenc.lab.train.training import ResolvedRun, chunk_of, initial_states, train_segment


class Ahead(NamedTuple):
    """The programs of one stage of a group, which may be compiled in any thread."""

    resolved: ResolvedRun
    stride: int
    rows: int
    arrangement: Arrangement
    knobs: Knobs
    """The knobs of all lanes."""
    sizes: Sequence[int]
    """At which it is evaluated."""

    @property
    def parts(self) -> dict[str, Callable[[], None]]:
        """Return the functions that compile before training, and before the evaluation."""
        return {"train": self.train, "evaluate": self.evaluate}

    def train(self) -> None:
        """Compile the initial state, the batches and the steps."""
        step, (task, sizes), seeds = self.resolved.step, self.resolved.batching, self.knobs.seed
        stride = chunk_of(self.resolved.batching, self.stride, seeds.size)
        drawing = draw_sizes.lower(sizes, stride, seeds, np.int32(0))
        drawing.compile()
        draws = _shapes(drawing)
        data = task.load_part("train")
        making = make_batches.lower(task, sizes.batch, sizes.edges[-1], self.arrangement, draws.keys, draws.sizes, data)
        making.compile()
        beginning = self._state()
        beginning.compile()
        batches = self._made(making).reading(step.coordinates)
        total, classes = np.int32(0), np.int32(task.classes)
        arguments = self.knobs, batches, np.int32(0), draws.buckets, total, classes
        train_segment.lower(step, self.arrangement, self._made(beginning), *arguments).compile()

    def evaluate(self) -> None:
        """Compile what makes the examples of all sizes, and what counts on them."""
        run, task, key = self.resolved, self.resolved.task, jax.eval_shape(lambda: jax.random.key(0))
        making = examples.lower(task, self.rows, max(self.sizes), key, np.int32(0), task.load_part("test"))
        making.compile()
        made = jax.tree.map(lambda a: np.broadcast_to(np.zeros((), a.dtype), a.shape), making.out_info)
        model, lowered = self._made(self._state()).model, set[str]()
        for n in self.sizes:
            batch = evaluation.own_tokens(run, self.sizes, n, made)
            scored = evaluation.scored_examples(run, run.step.coordinates, batch)
            if (shapes := str(jax.tree.map(np.shape, scored))) not in lowered:
                lowered.add(shapes)
                settings = evaluation.counting(run, *batch.tokens.shape)
                rest = model, self.knobs.seed, evaluation.SizeQuestion.of(run, n, False), scored
                evaluation.sums.lower(settings, self.arrangement, *rest).compile()

    def _state(self) -> Any:
        """The initial state, lowered."""
        task, step = self.resolved.task, self.resolved.step
        symbols, classes = np.int32(task.vocab), np.int32(task.classes)
        return initial_states.lower(*step.model, self.arrangement, self.knobs, None, symbols, classes)

    def _made(self, lowered: Any) -> PyTree:
        """The shapes of what a program over lanes returns, on the devices where it leaves them."""
        on = lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding(self.arrangement, a.size))  # noqa: E731
        return jax.tree.map(on, _shapes(lowered))


def _shapes(lowered: Any) -> PyTree:
    return jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), lowered.out_info)
