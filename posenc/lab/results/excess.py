"""What models lose above the best reader of a source, by place, in octaves: places up to 4, 8, 16, and so on. No jax.

A causal model does not see how long its text is, so each octave is read where its places stand in the narrowest bins:
in the shortest texts that reach its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from posenc.lab.metrics import NATS, PARTS
from posenc.lab.results.floors import BAYES
from posenc.lab.store.schema import TaskRecord


class Octave(NamedTuple):
    """Some bins of places of the texts of one size."""

    size: int
    bins: slice


def octaves(task: TaskRecord) -> dict[int, Octave]:
    """The first place beyond an octave to its bins, from the second half of so many places; of a record without exact
    losses there are none."""
    ends: dict[int, Octave] = {}
    for size, bins in sorted((task.places or {}).items()):
        end = 2
        while BAYES in bins and end <= size:
            first, last = -(-(end // 2) // bins["width"]), end // bins["width"]
            if first < last and end not in ends:
                ends[end] = Octave(size, slice(first, last))
            end *= 2
    return ends


def excess(task: TaskRecord, octave: Octave, losses: Mapping[str, Any], name: str = NATS) -> float:
    """By how many nats the loss of a token is above the least one in an octave: of a trial, by its places of that size,
    or of a reader in `losses` by its name."""
    bins = (task.places or {})[octave.size]
    scored = sum(bins["scored"][octave.bins])
    return (sum(losses[name][octave.bins]) - sum(bins[BAYES][octave.bins])) / max(scored, 1) / PARTS


def window_excess(task: TaskRecord, octave: Octave) -> dict[int, float]:
    """The tokens that a reader sees to what it loses above the least loss in an octave, as far as the record holds
    it."""
    windows = (task.places or {})[octave.size].get("windows", {})
    return {int(w): excess(task, octave, windows, w) for w in windows}
