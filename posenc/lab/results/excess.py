"""Loss of models above the optimal predictor of a source: by position, and as an effective context. No jax.

Positions are read in octaves: up to 4, 8, 16, and so on. A causal model does not see how long its text is. So each
octave is read in the shortest texts that reach its end, where bins are narrowest.

A loss that stays flat beyond training may come from a model that uses all of its context, or from one that sees a
window. The effective memory is the window whose exact loss is the model's. This one number separates the two (ours).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from posenc.lab.metrics import NATS, PARTS
from posenc.lab.results.floors import BAYES
from posenc.lab.results.rates import seed_values
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import at_chosen_rates
from posenc.lab.results.ties import median
from posenc.lab.store.schema import TaskRecord


class Octave(NamedTuple):
    """Some bins of places of the texts of one size."""

    size: int
    bins: slice


def octaves(task: TaskRecord) -> dict[int, Octave]:
    """Return the first position beyond an octave to its bins, from the second half of its positions. A record without
    exact losses has no octaves."""
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
    """Return the loss of a token in nats above the least one in an octave. It is of a trial, by its positions of that
    size, or of a predictor in `losses` by its name."""
    bins = (task.places or {})[octave.size]
    scored = sum(bins["scored"][octave.bins])
    return (sum(losses[name][octave.bins]) - sum(bins[BAYES][octave.bins])) / max(scored, 1) / PARTS


def window_excess(task: TaskRecord, octave: Octave) -> dict[int, float]:
    """The tokens that a reader sees to what it loses above the least loss in an octave, as far as the record holds
    it."""
    windows = (task.places or {})[octave.size].get("windows", {})
    return {int(w): excess(task, octave, windows, w) for w in windows}


def effective_memory(excess: float, lost: Mapping[int, float]) -> float:
    """Return the window of `lost` that loses `excess` nats above the least loss. Between two windows it interpolates
    linearly over the logarithm of their tokens. It is 0 if the shortest loses less.

    >>> effective_memory(0.25, {1: 1.0, 2: 0.5, 8: 0.0})
    4.0
    """
    import numpy as np

    windows = sorted(lost)
    losses = np.minimum.accumulate([lost[w] for w in windows])
    if excess > losses[0]:
        return 0.0
    return float(2 ** np.interp(excess, losses[::-1], np.log2(windows)[::-1]))


def effective_memories(results: Results, size: int) -> dict[tuple[str, str], float]:
    """Return task and scheme to the effective memory at a size. It is that of the median over runs of the excess beyond
    training, at the reported rates. Tasks without exact losses of windows, and schemes without a finished run at this
    size, are left out."""
    runs: dict[tuple[str, str], dict[tuple[float, int], float]] = {}
    lost: dict[str, dict[int, float]] = {}
    for task, label, trial in at_chosen_rates(results):
        if (windows := _windows(task, size)) and trial.places and size in trial.places:
            lost[task.label] = windows
            above = excess(task, _far(task, size), trial.places[size])
            runs.setdefault((task.label, label), {})[trial.knobs.lr, trial.knobs.seed] = above
    medians = {key: median(values) for key, values in seed_values(runs).items()}
    return {key: effective_memory(middle, lost[key[0]]) for key, middle in medians.items()}


def _windows(task: TaskRecord, size: int) -> dict[int, float]:
    """Return the loss of each window beyond training at a size, the whole text among them; older records hold too
    few."""
    bins = (task.places or {}).get(size, {})
    if "1" not in bins.get("windows", {}) or len(bins.get(BAYES, ())) <= (far := _far(task, size)).bins.start:
        return {}
    return window_excess(task, far) | {size: 0.0}


def _far(task: TaskRecord, size: int) -> Octave:
    """The bins of places of a size that lie beyond training as a whole."""
    return Octave(size, slice(-(-(task.first_beyond or 0) // (task.places or {})[size]["width"]), None))
