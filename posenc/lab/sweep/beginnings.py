"""Beginnings that runs share: what several schemes go on from is trained once, and each goes on from there.

A run with `then` trains under its first scheme as the run without does. Runs that differ in what follows alone have one
beginning, bit for bit, so that a worker keeps its state until there are too many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
from jaxtyping import PyTree

from posenc.lab.spec.run import Knobs
from posenc.lab.train.training import ResolvedRun

BYTES = 2**28
"""Of the beginnings that are kept on the host; the oldest go first, and one that is larger is not kept."""


class Beginning(NamedTuple):
    """The trials of a group where another scheme goes on."""

    state: PyTree
    """On the host, with a leading axis of lanes."""
    losses: list[list[float]]
    """For each segment, the mean loss of each trial."""

    @property
    def size(self) -> int:
        return sum(a.nbytes for a in jax.tree.leaves(self.state))


class Beginnings:
    """The beginnings that this process has trained."""

    def __init__(self):
        self._found: dict[Any, Beginning] = {}

    @staticmethod
    def key(stage: ResolvedRun, end: int, steps: int, stride: int, knobs: Sequence[Knobs]) -> Any:
        """What decides the numbers of a first stage that ends at a step of so many."""
        symbols = stage.task.vocab, stage.task.classes
        return stage.step, stage.batching, symbols, end, steps, stride, tuple(knobs)

    def get(self, key: Any) -> Beginning | None:
        """The beginning that was put under this key, if it is still kept."""
        return self._found.get(key)

    def put(self, key: Any, state: PyTree, losses: list[list[float]]) -> None:
        """Keep a copy of a state, and of the losses so far."""
        self._found[key] = Beginning(jax.device_get(state), list(losses))
        while sum(one.size for one in self._found.values()) > BYTES:
            del self._found[next(iter(self._found))]
