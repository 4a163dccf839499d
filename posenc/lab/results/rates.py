"""How learning rates are chosen: on validation examples of the sizes trained on, never on test examples.

Where a sweep had seeds for tuning, these choose the rate and are not reported. Else the reported seeds choose it too,
so that their numbers are a little better than those of further seeds would be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from posenc.lab.results.results import Results, Row

DIVERGED = "diverged"


@dataclass(frozen=True)
class Tuned:
    """The choice of one scheme's rate on one task by its tuning seeds."""

    rate: float
    rates: tuple[float, ...]
    """Those with a result."""
    seeds: tuple[int, ...]
    trials: tuple[str, ...]
    diverged: bool
    """Whether every trial diverged, at every rate; the rate is then the smallest."""


def choose_rate(scores: Mapping[float, Sequence[float]]) -> float:
    """The learning rate whose runs are best on average on validation examples; ties go to the smaller.

    `scores` gives, per rate, one value for each run: its mean over sizes within the training range.
    """
    if not scores:
        raise ValueError("No learning rate was given to choose from; at least one is needed.")
    if len(scores) == 1:
        return next(iter(scores))
    missing = [rate for rate, values in scores.items() if not len(values)]
    if missing:
        raise ValueError(
            f"Nothing was measured within the training range at the learning rate {missing[0]:g}, and these older "
            "records hold no validation examples, so none can be chosen; train again under a new --name."
        )
    means = {rate: round(float(np.mean(values)), 12) for rate, values in scores.items()}
    return min(means, key=lambda rate: (-means[rate], rate))


def tuned(results: Results) -> dict[tuple[str, str], Tuned]:
    """Task and scheme to the choice by its tuning seeds, by the metric of the task; none where no seed tuned."""
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in results.tuning_rows():
        cells.setdefault((row.task, row.scheme), []).append(row)
    validated = results.validated()
    return {cell: _tuned(rows, validated) for cell, rows in cells.items()}


def decided(results: Results) -> dict[str, float]:
    """Tuning trial to the rate chosen for its run, where every planned tuning trial of that run has a result."""
    waiting = {(trial.task, results.label(trial, trial)) for trial in results.unfinished if trial.tuning}
    found = {cell: choice for cell, choice in tuned(results).items() if cell not in waiting}
    return {trial: choice.rate for choice in found.values() for trial in choice.trials}


def scores(rows: Sequence[Row], validated: Mapping[str, float]) -> dict[float, list[float]]:
    """Per rate, the mean of each run on validation examples; of older records, on the sizes trained on.

    A diverged run has neither, and scores what a uniform guess does.
    """
    runs: dict[tuple[float, str], list[Row]] = {}
    for row in rows:
        runs.setdefault((row.lr, row.trial), []).append(row)
    found: dict[float, list[float]] = {row.lr: [] for row in rows}
    for (rate, trial), of_run in runs.items():
        inside = [row.value for row in of_run if row.trained]
        if of_run[0].outcome == DIVERGED:
            found[rate].append(float(np.mean(inside or [row.value for row in of_run])))
        elif trial in validated:
            found[rate].append(validated[trial])
        elif inside:
            found[rate].append(float(np.mean(inside)))
    return found


def _tuned(rows: Sequence[Row], validated: Mapping[str, float]) -> Tuned:
    """A rate at which every trial diverged is chosen only where none is left."""
    alive = {row.lr for row in rows if row.outcome != DIVERGED}
    rate = choose_rate(scores([row for row in rows if not alive or row.lr in alive], validated))
    rates, seeds, trials = (sorted({getattr(row, name) for row in rows}) for name in ("lr", "seed", "trial"))
    return Tuned(rate, tuple(rates), tuple(seeds), tuple(trials), not alive)
