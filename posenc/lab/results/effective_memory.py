"""Effective memory: how many tokens a reader of the source must see to lose what a model loses.

A loss that stays flat beyond training may be that of a model that uses all of its context, or of one that sees a window
of it. The window whose exact loss is the model's is one number for a scheme that tells them apart (ours).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from posenc.lab.metrics import NATS, PARTS
from posenc.lab.results.floors import BAYES
from posenc.lab.results.rates import seed_values
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import at_chosen_rates
from posenc.lab.store.schema import TaskRecord, TrialRecord

ROWS, PLACES = 32, 128
"""Test examples, and places of each, on which the losses of windows are computed."""


def effective_memory(excess: float, lost: Callable[[int], float], longest: int) -> float:
    """The shortest window that loses `excess` nats above the least loss, between two whole numbers by a straight line;
    0 where a window of one token loses less, and infinite where one of `longest` tokens loses more.

    `lost` gives what a window loses, and falls with its length; it is asked some 2 log₂ `longest` times.

    >>> round(effective_memory(0.25, lambda w: 1 / w, 64), 6)
    4.0
    """
    if excess >= lost(1):
        return 1.0 if excess == lost(1) else 0.0
    if excess < lost(longest):
        return math.inf
    low, high = 1, longest
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if lost(middle) > excess else (low, middle)
    return low + (lost(low) - excess) / (lost(low) - lost(high))


def effective_memories(results: Results, size: int) -> dict[tuple[str, str], float]:
    """Task and scheme to the effective memory at a size: that of the median over runs of what they lose above the least
    loss, at the places beyond training, at the learning rates that are reported. This makes the test examples again,
    and imports jax. Tasks without exact losses, and schemes without a finished run at this size, are left out."""
    runs: dict[tuple[str, str], dict[tuple[float, int], float]] = {}
    tasks: dict[tuple[str, str], TaskRecord] = {}
    for task, label, trial in at_chosen_rates(results):
        if (above := _far_excess(task, trial, size)) is not None:
            runs.setdefault((task.label, label), {})[trial.knobs.lr, trial.knobs.seed] = above
            tasks[task.label, label] = task
    medians = {key: float(np.median(values)) for key, values in seed_values(runs).items()}
    return {
        key: effective_memory(median, _lost(tasks[key].label, size, tasks[key].first_beyond or 0), size)
        for key, median in medians.items()
    }


def _far_excess(task: TaskRecord, trial: TrialRecord, size: int) -> float | None:
    """What a trial loses above the least loss in the bins of a size that lie beyond training as a whole."""
    bins, first = (task.places or {}).get(size, {}), task.first_beyond or 0
    far = [k for k, _ in enumerate(bins.get(BAYES, ())) if k * bins["width"] >= first]
    if not far or not trial.places or size not in trial.places:
        return None
    above = sum(trial.places[size][NATS][k] - bins[BAYES][k] for k in far)
    return above / PARTS / sum(bins["scored"][k] for k in far)


@functools.lru_cache(maxsize=16)
def _lost(label: str, size: int, first: int) -> Callable[[int], float]:
    """What windows lose above the least loss of a task at the places of a size from `first` on, on test examples."""
    import jax.numpy as jnp

    from posenc.lab.tasks import parse
    from posenc.lab.tasks.examples import examples, texts_of
    from posenc.lab.tasks.measure import evaluation_key

    task = parse(label)
    texts = texts_of(examples(task, ROWS, size, evaluation_key(task, size), jnp.int32(size)), size)
    places = list(range(first, size, max(1, (size - first) // PLACES)))
    least = task.losses(texts, None, places).mean()
    return functools.cache(lambda window: float(task.losses(texts, window, places).mean() - least))
