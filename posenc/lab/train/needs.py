"""Checks of a run before it trains: shapes that agree, memory, positions in reach, operations.

Models are traced in the abstract, so that an impossible run is refused within a second, and not after an hour.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from posenc.coordinates import check_reach
from posenc.lab.models.interface import Inputs, Shape, coordinate_inputs, inputs
from posenc.lab.spec.run import Knobs
from posenc.lab.tasks import Task
from posenc.lab.tasks.examples import batch_shapes
from posenc.lab.train.device import memory
from posenc.lab.train.evaluation import SCORES, scored_examples
from posenc.lab.train.shapes import places
from posenc.lab.train.training import ResolvedRun, State, as_arrays, begin, stages
from posenc.naming import bind
from posenc.numerics.sizes import gib

COPIES = 3
"""Arrays as large as the scores of a layer that are held at once, as seen on two cores."""
PROCESS = 2**29
"""Bytes of a process that has compiled a few programs."""
ROWS = 256
"""Examples whose coordinates are looked at before anything trains."""


def fits(resolved: ResolvedRun, longest: int, before: Any = None) -> Any:
    """The state of a run in the abstract. Refuses what cannot run at the longest size."""
    task, names = resolved.task, resolved.step.coordinates
    taken = jax.eval_shape(lambda made: scored_examples(resolved, names, made).inputs, batch_shapes(task, 1, longest))
    if before is None:
        leaves, tree = jax.tree.flatten(taken)
        state = _beginning(resolved.step.model, tuple(leaves), tree)
    else:
        state = _traced(resolved.step.model, taken, before)
    _check_draws(resolved, longest)
    return state


def check_memory(resolved: ResolvedRun, longest: int) -> None:
    """Refuse what the machine cannot hold: weights, logits, and scores that no chunk of rows makes small enough."""
    run, task, here = resolved.run, resolved.task, memory()

    def hold(needed: float, what: str, lower: str, beside: float = 0) -> None:
        if here and beside + needed > here:
            raise ValueError(f"{what} take {gib(needed)}, and this machine has {gib(here)}; lower {lower}.")

    weights, tables = 12 * run.depth * run.kind.weights(run), 12 * run.width * (task.vocab + task.classes)
    hold(weights, "its weights and their moments", f"{'width, hidden' if run.hidden else 'width'} or depth")
    ends = f"the embedding of {task.vocab} tokens, the readout of {task.classes} and their moments"
    hold(tables, ends, "the number of symbols or width", beside=weights)
    for n, rows in ((run.length, run.batch), (longest, 1)):
        tokens, many = task.tokens(n), f"{rows} sequence{'s' if rows > 1 else ''} of size {n}"
        hold(4 * rows * run.kind.pairs(run) * tokens**2, f"one layer's scores of {many}", "the size, batch or heads")
        logits = f"the logits of {many}, {task.classes} for each token,"
        hold(4 * rows * tokens * task.classes, logits, "the number of symbols, the size or batch")


def peak(resolved: ResolvedRun, longest: int) -> float:
    """Estimate the bytes that a group takes at its peak, in training or at the largest evaluated size. It was right
    within a factor of two."""
    run, task = resolved.run, resolved.task
    weights = run.depth * run.kind.weights(run) + run.width * (task.vocab + task.classes)

    def held(tokens: int, rows: int, layers: int) -> float:
        features = tokens * (8 * run.width + 2 * (run.hidden or run.width))
        scores = COPIES * run.kind.pairs(run) * tokens**2
        return 4 * rows * (layers * (features + scores) + tokens * task.classes)

    far = task.tokens(longest)
    rows = max(1, SCORES // max(run.kind.pairs(run) * far**2, far * task.classes, 1))
    trained = held(task.tokens(run.length), run.batch, run.depth)
    return PROCESS + 16 * weights + max(trained, held(far, rows, 1))


def _check_draws(resolved: ResolvedRun, longest: int) -> None:
    """Refuse coordinates that may draw, in training or at the largest size evaluated, what a scheme cannot serve.

    What a task offers may differ from row to row, as a sum does in length, so many rows are looked at.
    """
    if not places(resolved.scheme):
        return
    scheme = bind(resolved.scheme, resolved.shape.dims)  # a model that binds its own schemes leaves this one open
    for n, training in ((resolved.run.length, True), (longest, resolved.run.evaluation == "as_trained")):
        check_reach(scheme, resolved.shape.dims, _Examples(resolved.task, n), training)


@dataclasses.dataclass(frozen=True)
class _Examples(Mapping[str, Any]):
    """The inputs of coordinates for examples of one size. Examples are drawn only if more than the index is read, as
    drawing takes seconds to compile and most coordinates read only the index."""

    task: Task
    n: int

    def __getitem__(self, name: str) -> Any:
        return np.arange(self.task.tokens(self.n), dtype=np.int32) if name == "index" else self._drawn[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._drawn)

    def __len__(self) -> int:
        return len(self._drawn)

    @property
    def _drawn(self) -> dict[str, Any]:
        return _inputs_drawn(self.task, self.n)


@functools.lru_cache(maxsize=64)
def _inputs_drawn(task: Task, n: int) -> dict[str, Any]:
    """The inputs of coordinates for ROWS examples; the schemes of a sweep share them."""
    batch = jax.jit(functools.partial(task.sample, n=n, batch=ROWS, n_max=n))(jax.random.key(0))
    return coordinate_inputs(inputs(batch))


@functools.lru_cache(maxsize=2**10)  # tasks share it
def _beginning(model: tuple[Any, Shape], leaves: tuple[Any, ...], tree: Any) -> State:
    return _traced(model, tree.unflatten(leaves), None)


def _traced(model: tuple[Any, Shape], taken: Inputs, before: State | None) -> State:
    """The state of a model, after a forward pass in the abstract; symbols and classes decide no shape."""

    def forward(taken: Inputs, before: State | None) -> tuple[State, Any]:
        state = begin(*model, as_arrays(Knobs()), before, 1, 1)
        return state, state.model(taken, jax.random.key(0))

    return jax.eval_shape(forward, taken, before)[0]


def steps(resolved: ResolvedRun, total: int, begun: set[Any]) -> float:
    """Floating-point operations of training one trial, whose later steps may be longer: in each, three times the
    forward pass at the mean length. A beginning that another scheme goes on from is left out where it is among those
    `begun`, to which those counted are added."""
    operations_so_far, begin = 0.0, 0
    for stage, end in stages(resolved, total):
        beginning, run = (stage.step, stage.batching, end), stage.run
        if end == total or beginning not in begun:
            tokens = (stage.task.tokens(run.shortest) + stage.task.tokens(run.length)) / 2
            operations_so_far += 3 * forward(stage, tokens) * run.batch * (end - begin)
        begun.add(beginning)
        begin = end
    return operations_so_far


def evaluation(resolved: ResolvedRun, sizes: Sequence[int], rows: int) -> float:
    """Floating-point operations of evaluating one trial."""
    return sum(forward(resolved, resolved.task.tokens(n)) for n in sizes) * rows


def forward(resolved: ResolvedRun, tokens: float) -> float:
    """Floating-point operations of one sequence: matrix products alone."""
    run = resolved.run
    looked = 2 * tokens * run.width if run.kind.pairs(run) else 0
    layer = run.kind.weights(run) + looked
    return 2 * tokens * (run.depth * layer + run.width * resolved.task.classes)
