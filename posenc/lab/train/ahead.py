"""Compile the programs of a group while another one trains: XLA takes one core, and lets Python go on.

Each part lowers its programs for the shapes that they will be called with, and compiles them; the call then finds them.
A part that has begun is waited for; one that has not is left to the call that needs it. So nothing is compiled twice,
and what fails here fails again, with its message, where the group is trained.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
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


class Compiler:
    """Compiles parts of groups in one thread of this name, in the order in which they come."""

    def __init__(self, name: str):
        self._name = name
        self._waiting: queue.SimpleQueue[tuple[Future[None], Callable[[], None]] | None] = queue.SimpleQueue()
        self._parts: dict[tuple[str, str], Future[None]] = {}
        self._thread: threading.Thread | None = None

    def begin(self, group: str, parts: Mapping[str, Callable[[], None]]) -> None:
        """Compile these parts of a group, one after another, but for those that were begun before."""
        if self._thread is None:  # a daemon: XLA cannot be interrupted, and Ctrl-C does not wait for it
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        for part, compiling in parts.items():
            if (group, part) not in self._parts:
                self._parts[group, part] = future = Future[None]()
                self._waiting.put((future, compiling))

    def settle(self, group: str, part: str) -> None:
        """Wait for a part that is being compiled, or take it back, before its programs are called."""
        future = self._parts.get((group, part))
        if future is not None and not future.cancel():
            wait([future])

    def close(self) -> None:
        """Take back what has not begun; what is being compiled is left to its thread."""
        for future in self._parts.values():
            future.cancel()
        self._waiting.put(None)

    def _run(self) -> None:
        while (job := self._waiting.get()) is not None:
            future, compiling = job
            if future.set_running_or_notify_cancel():
                try:
                    compiling()
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(None)
