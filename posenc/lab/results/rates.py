"""How learning rates are chosen: on validation examples of the sizes trained on, never on test examples.

Where a sweep had seeds for tuning, these choose the rate and are not reported. The choice is among the rates of all
tuning trials in the folder, whichever command planned them. Else the reported seeds choose it too, so that their
numbers are a little better than those of further seeds would be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from posenc.lab.results.results import Results, Row
from posenc.lab.store.records import merit

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
    settled: bool
    """Whether every planned tuning trial has a result. Until then the rate is one at which seeds are reported already,
    if there are any, so that more tuning trials take no result away."""


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
    waiting = {(trial.task, results.label(trial, trial)) for trial in results.unfinished if trial.tuning}
    reported: dict[tuple[str, str], set[float]] = {}
    for row in results.rows() if waiting else ():
        reported.setdefault((row.task, row.scheme), set()).add(row.lr)
    validated = results.validated()
    return {
        cell: _tuned(rows, validated, cell not in waiting, reported.get(cell, set())) for cell, rows in cells.items()
    }


def decided(results: Results) -> dict[str, float]:
    """Tuning trial to the rate chosen for its run, where every planned tuning trial of that run has a result."""
    return {trial: choice.rate for choice in tuned(results).values() if choice.settled for trial in choice.trials}


def at_chosen(results: Results) -> Results:
    """The same results without reported trials at another rate than their tuning seeds chose."""
    chosen = tuned(results)
    records = []
    for record in results.records:
        choices = [(trial, chosen.get((record.task.label, results.label(record, trial)))) for trial in record.trials]
        kept = tuple(trial for trial, choice in choices if choice is None or trial.knobs.lr == choice.rate)
        records += [replace(record, trials=kept)] if kept else []
    return replace(results, records=tuple(records))


def scores(rows: Sequence[Row], validated: Mapping[str, float]) -> dict[float, list[float]]:
    """Per rate, the merit of each run on validation examples; of older records, on the sizes trained on.

    A diverged run has neither, and scores what a uniform guess does.
    """
    runs: dict[tuple[float, str], list[Row]] = {}
    for row in rows:
        runs.setdefault((row.lr, row.trial), []).append(row)
    found: dict[float, list[float]] = {row.lr: [] for row in rows}
    for (rate, trial), of_run in runs.items():
        inside = [merit(row.metric, row.value) for row in of_run if row.trained]
        if of_run[0].outcome == DIVERGED:
            found[rate].append(float(np.mean(inside or [merit(row.metric, row.value) for row in of_run])))
        elif trial in validated:
            found[rate].append(validated[trial])
        elif inside:
            found[rate].append(float(np.mean(inside)))
    return found


def _tuned(rows: Sequence[Row], validated: Mapping[str, float], settled: bool, reported: set[float]) -> Tuned:
    """A rate at which every trial diverged is chosen only where none is left."""
    rates, seeds, trials = ({getattr(row, name) for row in rows} for name in ("lr", "seed", "trial"))
    alive = {row.lr for row in rows if row.outcome != DIVERGED}
    among = rates if settled else rates & reported or rates
    among = among & alive or among
    rate = choose_rate(scores([row for row in rows if row.lr in among], validated))
    return Tuned(rate, *(tuple(sorted(each)) for each in (rates, seeds, trials)), not alive, settled)
