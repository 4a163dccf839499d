"""How learning rates are chosen: on validation examples of the sizes trained on, never on test examples.

Rates whose means on validation examples differ by no more than chance may tie, and differ beyond the sizes trained on.
So the runs at all rates within one standard error of the best are reported (the one-standard-error rule of Breiman et
al., 1984, which also has one chosen: here the best, of equals the smallest). Seeds are the sample: a
seed's number is the median of its runs at these rates.

Where a sweep had seeds for tuning, these choose the rate and are not reported. The choice is among the rates of all
tuning trials in the folder, whichever command planned them. Else the reported seeds choose it too, so that their
numbers are a little better than those of further seeds would be.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import median
from typing import NamedTuple, TypeVar

import numpy as np

from posenc.lab import metrics
from posenc.lab.results import fractions
from posenc.lab.results.floors import uniform
from posenc.lab.results.results import Results, Row, grouped
from posenc.lab.store.schema import GroupRecord

DIVERGED = "diverged"
K = TypeVar("K")
V = TypeVar("V", float, Fraction)


class Validation(NamedTuple):
    """What chooses a trial's learning rate."""

    share: float | Fraction
    """The mean over sizes on validation examples, by the metric of the task, of a loss below 0; of a diverged trial
    that of a guess."""
    examples: int
    """How many examples there are of all sizes, which all runs of a task share."""


@dataclass(frozen=True)
class Tuned:
    """The choice of one scheme's rate on one task by its tuning seeds."""

    rate: float
    ties: tuple[float, ...]
    """The rates that tie with it in validation, itself among them."""
    rates: tuple[float, ...]
    """Those with a result."""
    seeds: tuple[int, ...]
    trials: tuple[str, ...]
    diverged: bool
    """Whether every trial diverged, at every rate; the rate is then the smallest."""
    settled: bool
    """Whether every planned tuning trial has a result. Until then the rate is one at which seeds are reported already,
    if there are any, so that more tuning trials take no result away."""


def validations(results: Results) -> dict[str, Validation]:
    """Trial to what its validation examples say; those of older records have none, unless they diverged.

    By the metric of its task, whatever metric is shown, so that this changes no choice.
    """
    by_trial = {}
    for record in (*(results.own or results.records), *results.tuning):
        for trial in record.trials:
            if trial.outcome == DIVERGED:
                by_trial[trial.id] = Validation(_guess(record), 0)
                continue
            each = list((trial.validation or {}).values())
            shares = [metrics.fraction(counts, record.task.metric) for counts in each]
            if known := [metrics.merit(record.task.metric, share) for share in shares if share is not None]:
                by_trial[trial.id] = Validation(fractions.mean(known), sum(counts.get("rows", 0) for counts in each))
    return by_trial


def choose_rate(scores: Mapping[float, Sequence[float | Fraction]]) -> float:
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
    means = {rate: fractions.mean(values) for rate, values in scores.items()}
    return min(means, key=lambda rate: (-means[rate], rate))


def tying_rates(rows: Sequence[Row], validated: Mapping[str, Validation], rate: float) -> tuple[float, ...]:
    """The rates that tie in validation with the one that was chosen of these runs, itself among them, ascending.

    A rate ties if its mean is below that of the chosen one by at most the standard error of a share p over all N
    validation examples of a run, sqrt(p (1 - p) / N). p is the mean of the chosen one with an example more that is
    right and one that is wrong, (p N + 1) / (N + 2), since a rate without errors has a sampling error too. Every seed
    of the chosen rate must have run at it, and none diverged.
    """
    means = {lr: float(fractions.mean(shares)) for lr, shares in scores(rows, validated).items() if shares}
    if rate not in means or not (n := _examples(rows, validated)) or means[rate] < 0:  # the error of a loss is unknown
        return (rate,)
    share = (means[rate] * n + 1) / (n + 2)
    least = means[rate] - math.sqrt(share * (1 - share) / n)
    seeds = {lr: {row.seed for row in rows if row.lr == lr} for lr in means}
    lost = {row.lr for row in rows if row.outcome == DIVERGED}
    near = {lr for lr, mean in means.items() if mean >= least and seeds[lr] >= seeds[rate]}
    return tuple(sorted({rate} | near - lost))


def by_seed(runs: Mapping[tuple[float, int], V], rates: Collection[float]) -> dict[int, V]:
    """Seed to the median of its runs at these learning rates, of the values by rate and seed; a seed that lacks one of
    the rates is left out."""
    ran = [{seed for lr, seed in runs if lr == rate} for rate in rates]
    return {seed: median(runs[rate, seed] for rate in rates) for seed in sorted(set.intersection(*ran))}


def seed_values(runs: Mapping[K, Mapping[tuple[float, int], float]]) -> dict[K, list[float]]:
    """The same of several things at once, as figures draw them: to each one value for each seed."""
    return {key: list(of.values()) for key, of in _seed_runs(runs).items()}


def seed_names(runs: Mapping[K, Mapping[tuple[float, int], float]]) -> dict[K, list[int]]:
    """The seeds of `seed_values`, in the same order."""
    return {key: list(of) for key, of in _seed_runs(runs).items()}


def _seed_runs(runs: Mapping[K, Mapping[tuple[float, int], float]]) -> dict[K, dict[int, float]]:
    return {key: by_seed(of, {rate for rate, _ in of}) for key, of in runs.items()}


def tuned(results: Results) -> dict[tuple[str, str], Tuned]:
    """Task and scheme to the choice by its tuning seeds, by the metric of the task; none where no seed tuned."""
    cells = grouped(((row.task, row.scheme), row) for row in results.tuning_rows())
    waiting = {(trial.task, results.label(trial, trial)) for trial in results.unfinished if trial.tuning}
    reported = grouped(((row.task, row.scheme), row.lr) for row in (results.rows() if waiting else ()))
    validated = validations(results)
    return {
        cell: _tuned(rows, validated, cell not in waiting, {*reported.get(cell, ())}) for cell, rows in cells.items()
    }


def decided(results: Results) -> dict[str, float]:
    """Tuning trial to the rate chosen for its run, where every planned tuning trial of that run has a result."""
    return {trial: choice.rate for choice in tuned(results).values() if choice.settled for trial in choice.trials}


def at_chosen(results: Results) -> Results:
    """The same results without reported trials at other rates than those that tie for their tuning seeds."""
    tuning = tuned(results)
    reported = []
    for record in results.records:
        choices = [(trial, tuning.get((record.task.label, results.label(record, trial)))) for trial in record.trials]
        kept = tuple(trial for trial, choice in choices if choice is None or trial.knobs.lr in choice.ties)
        reported += [replace(record, trials=kept)] if kept else []
    return replace(results, records=tuple(reported))


def scores(rows: Sequence[Row], validated: Mapping[str, Validation]) -> dict[float, list[float | Fraction]]:
    """Per rate, the mean of each run on validation examples; of older records, on the sizes trained on. A diverged run
    scores what a uniform guess does. More is better: a loss is counted below 0."""
    runs = grouped(((row.lr, row.trial), row) for row in rows)
    by_rate: dict[float, list[float | Fraction]] = {row.lr: [] for row in rows}
    for (rate, trial), of_run in runs.items():
        inside = [metrics.merit(row.metric, row.fraction) for row in of_run if row.trained]
        if trial in validated:
            by_rate[rate].append(validated[trial].share)
        elif inside:
            by_rate[rate].append(fractions.mean(inside))
    return by_rate


def _guess(record: GroupRecord) -> float:
    """What a uniform guess gets right at the sizes trained on, or at all where none of these was measured."""
    task, (low, high) = record.task, record.task.trained
    sizes = [n for n in task.floors if low <= n <= high] or list(task.floors)
    guess = float(np.mean([uniform(task, n) for n in sizes])) if sizes else 0.0
    return metrics.merit(task.metric, guess)


def _examples(rows: Sequence[Row], validated: Mapping[str, Validation]) -> int:
    """How many validation examples a run has; of older records, how many test examples of the sizes trained on."""
    inside = dict.fromkeys((row.trial for row in rows), 0)
    for row in rows:
        inside[row.trial] += row.rows if row.trained else 0
    return max((validated[trial].examples if trial in validated else n for trial, n in inside.items()), default=0)


def _tuned(rows: Sequence[Row], validated: Mapping[str, Validation], settled: bool, reported: set[float]) -> Tuned:
    """A rate at which every trial diverged is chosen only where none is left."""
    rates, seeds, trials = ({getattr(row, name) for row in rows} for name in ("lr", "seed", "trial"))
    alive = {row.lr for row in rows if row.outcome != DIVERGED}
    among = rates if settled else rates & reported or rates
    among = among & alive or among
    candidates = [row for row in rows if row.lr in among]
    rate = choose_rate(scores(candidates, validated))
    ties, basis = tying_rates(candidates, validated, rate), (tuple(sorted(each)) for each in (rates, seeds, trials))
    return Tuned(rate, ties, *basis, not alive, settled)
