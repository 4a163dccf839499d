"""Effective memory: how many tokens a reader of the source must see to lose what a model loses. No jax.

A loss that stays flat beyond training may be that of a model that uses all of its context, or of one that sees a window
of it. The window whose exact loss is the model's is one number for a scheme that tells them apart (ours).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from posenc.lab.metrics import NATS, PARTS
from posenc.lab.results.floors import BAYES
from posenc.lab.results.rates import seed_values
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import at_chosen_rates
from posenc.lab.store.schema import TaskRecord


def effective_memory(excess: float, lost: Mapping[int, float]) -> float:
    """The window that loses `excess` nats above the least loss, of those in `lost`; between two of them by a straight
    line over the logarithm of their tokens. It is 0 where the shortest loses less.

    >>> effective_memory(0.25, {1: 1.0, 2: 0.5, 8: 0.0})
    4.0
    """
    windows = sorted(lost)
    losses = np.minimum.accumulate([lost[w] for w in windows])
    if excess > losses[0]:
        return 0.0
    return float(2 ** np.interp(excess, losses[::-1], np.log2(windows)[::-1]))


def effective_memories(results: Results, size: int) -> dict[tuple[str, str], float]:
    """Task and scheme to the effective memory at a size: that of the median over runs of what they lose above the least
    loss, at the places beyond training, at the learning rates that are reported. Tasks without exact losses of windows,
    and schemes without a finished run at this size, are left out."""
    runs: dict[tuple[str, str], dict[tuple[float, int], float]] = {}
    lost: dict[str, dict[int, float]] = {}
    for task, label, trial in at_chosen_rates(results):
        if (windows := _windows(task, size)) and trial.places and size in trial.places:
            lost[task.label] = windows
            above = _far_excess(task, size, trial.places[size][NATS])
            runs.setdefault((task.label, label), {})[trial.knobs.lr, trial.knobs.seed] = above
    medians = {key: float(np.median(values)) for key, values in seed_values(runs).items()}
    return {key: effective_memory(median, lost[key[0]]) for key, median in medians.items()}


def _windows(task: TaskRecord, size: int) -> dict[int, float]:
    """What each window loses beyond training at a size, the whole text among them; older records hold too few."""
    windows = (task.places or {}).get(size, {}).get("windows", {})
    far = _far(task, size)
    if not far or "1" not in windows:
        return {}
    return {int(w): _far_excess(task, size, of) for w, of in windows.items()} | {size: 0.0}


def _far_excess(task: TaskRecord, size: int, losses: Sequence[int]) -> float:
    """What is lost above the least loss at the places beyond training, in nats for a token."""
    bins, far = (task.places or {})[size], _far(task, size)
    return sum(losses[k] - bins[BAYES][k] for k in far) / PARTS / sum(bins["scored"][k] for k in far)


def _far(task: TaskRecord, size: int) -> list[int]:
    """The bins of places of a size that lie beyond training as a whole."""
    bins = (task.places or {}).get(size, {})
    return [k for k, _ in enumerate(bins.get(BAYES, ())) if k * bins["width"] >= (task.first_beyond or 0)]
