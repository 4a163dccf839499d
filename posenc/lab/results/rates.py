"""Choice of learning rates: on validation examples of the trained sizes, never on test examples.

Rates whose means on validation examples differ by no more than chance may tie, and differ beyond the trained sizes. So
the runs at all rates within one standard error of the best are reported. This is the one-standard-error rule of Breiman
et al. (1984), which also has one chosen: here the best, of equals the smallest. Seeds are the sample: a seed's number
is the median of its runs at these rates.

In a sweep with seeds for tuning, these choose the rate and are not reported. The choice is among the rates of all
tuning trials in the folder, whichever command planned them. Else the reported seeds choose it too, so that their
numbers are a little better than those of further seeds would be.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from posenc.lab import metrics
from posenc.lab.results.floors import uniform
from posenc.lab.results.results import Results, grouped, sizes_of
from posenc.lab.results.ties import TOLERANCE, mean, median
from posenc.lab.store.schema import GroupRecord, TrialRecord

DIVERGED = "diverged"
Cell = tuple[str, str]
"""A task and the label of a scheme."""
K = TypeVar("K")


class Trial(NamedTuple):
    """A trial as the choice of a rate sees it."""

    id: str
    lr: float
    seed: int
    diverged: bool
    share: float | None
    """The mean over sizes on validation examples by the metric of the task; a loss counts as negative. A diverged trial
    has that of a guess. It is None if no validation example was scored."""
    examples: int
    """How many validation examples there are of all sizes, which all trials of a task share."""
    sizes: frozenset[int]
    """The test sizes at which it was measured."""


@dataclass(frozen=True, kw_only=True)
class Rates:
    """The learning rates of one scheme on one task: the chosen one, those that tie with it, and what chose them."""

    rate: float | None = None
    """The best on validation examples of the sizes trained on, of equals the smallest; None where no trial has a
    result."""
    ties: tuple[float, ...] = ()
    """The rates that tie in validation with the chosen one, itself among them."""
    reported: tuple[float, ...] = ()
    """The tying rates at which every reported seed was measured at every size."""
    tuning: tuple[int, ...] = ()
    """The seeds that chose the rate and are not reported; empty where the reported ones chose it."""
    tuning_trials: tuple[str, ...] = ()
    unstable: bool = False
    """True if all tuning trials diverged, at every rate; the smallest is then reported."""
    settled: bool = True
    """True if every planned tuning trial has a result. Until then the rate is one at which seeds are reported already,
    if there are any, so that more tuning trials take no result away."""


def rates_by_cell(results: Results) -> dict[Cell, Rates]:
    """Task and label to its rates. They are chosen by the metric of the task, whatever metric is shown."""
    trials, choices = _trials(results, results.own or results.records), tuned(results)
    return {cell: _rates(trials.get(cell, ()), choices.get(cell)) for cell in {**trials, **choices}}


def _rates(trials: Sequence[Trial], choice: Rates | None) -> Rates:
    """The choice of tuning seeds, or else of these reported trials, with the rates at which they are reported."""
    made = choice or _best_rate(trials)
    measured = {lr: {(t.seed, size) for t in trials if t.lr == lr for size in t.sizes} for lr in made.ties}
    kept = (lr for lr in made.ties if lr == made.rate or measured[lr] >= measured[made.rate] != set())
    return replace(made, reported=tuple(kept))


def _best_rate(trials: Sequence[Trial]) -> Rates:
    """The best rate of some trials, and those that tie with it."""
    rate = choose_rate(scores(trials))
    return Rates(rate=rate, ties=tying_rates(trials, rate))


def _trials(results: Results, records: Sequence[GroupRecord]) -> dict[Cell, list[Trial]]:
    pairs = [(record, trial) for record in records for trial in record.trials]
    return grouped(((r.task.label, results.label(r, trial)), _trial(r, trial)) for r, trial in pairs)


def _trial(record: GroupRecord, trial: TrialRecord) -> Trial:
    head, metric = (trial.id, trial.knobs.lr, trial.knobs.seed), record.task.metric
    if trial.outcome == DIVERGED:
        return Trial(*head, True, _guess(record), 0, frozenset(sizes_of(record)))
    each = list((trial.validation or {}).values())
    shares = [metrics.share(counts, metric) for counts in each]
    merits = [metrics.merit(metric, share) for share in shares if not math.isnan(share)]
    sizes = frozenset(n for n, counts in trial.evaluations.items() if not metrics.scored_nothing(counts))
    share = mean(merits) if merits else None
    return Trial(*head, False, share, sum(counts.get("rows", 0) for counts in each), sizes)


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
            f"No validation example was scored at the learning rate {missing[0]:g}, so that none can be chosen; train"
            " again under a new --name."
        )
    means = {rate: mean(values) for rate, values in scores.items()}
    best = max(means.values())
    return min(rate for rate, share in means.items() if share >= best - TOLERANCE)


def tying_rates(trials: Sequence[Trial], rate: float) -> tuple[float, ...]:
    """The rates that tie in validation with the one that was chosen of these runs, itself among them, ascending.

    A rate ties if its mean is below that of the chosen one by at most the standard error of a share p over all N
    validation examples of a run, sqrt(p (1 - p) / N). p is the mean of the chosen one with an example more that is
    right and one that is wrong, (p N + 1) / (N + 2), since a rate without errors has a sampling error too. Every seed
    of the chosen rate must have run at it, and none diverged.
    """
    means = {lr: mean(shares) for lr, shares in scores(trials).items() if shares}
    n = max((trial.examples for trial in trials), default=0)
    if rate not in means or not n or means[rate] < 0:  # the error of a loss is unknown
        return (rate,)
    share = (means[rate] * n + 1) / (n + 2)
    least = means[rate] - math.sqrt(share * (1 - share) / n)
    seeds = {lr: {trial.seed for trial in trials if trial.lr == lr} for lr in means}
    lost = {trial.lr for trial in trials if trial.diverged}
    near = {lr for lr, value in means.items() if value >= least and seeds[lr] >= seeds[rate]}
    return tuple(sorted({rate} | near - lost))


def by_seed(runs: Mapping[tuple[float, int], float], rates: Collection[float]) -> dict[int, float]:
    """Return seed to the median of its runs at these learning rates, from values by rate and seed. A seed that lacks
    one of the rates is left out."""
    ran = [{seed for lr, seed in runs if lr == rate} for rate in rates]
    return {seed: median([runs[rate, seed] for rate in rates]) for seed in sorted(set.intersection(*ran))}


def seed_values(runs: Mapping[K, Mapping[tuple[float, int], float]]) -> dict[K, list[float]]:
    """Return one value for each seed, for several things at once, as figures draw them."""
    return {key: list(of.values()) for key, of in _seed_runs(runs).items()}


def seed_names(runs: Mapping[K, Mapping[tuple[float, int], float]]) -> dict[K, list[int]]:
    """The seeds of `seed_values`, in the same order."""
    return {key: list(of) for key, of in _seed_runs(runs).items()}


def _seed_runs(runs: Mapping[K, Mapping[tuple[float, int], float]]) -> dict[K, dict[int, float]]:
    return {key: by_seed(of, {rate for rate, _ in of}) for key, of in runs.items()}


def tuned(results: Results) -> dict[Cell, Rates]:
    """Task and scheme to the choice by its tuning seeds, by the metric of the task; none where no seed tuned."""
    waiting = {(trial.task, results.label(trial, trial)) for trial in results.unfinished if trial.tuning}
    reported = _trials(results, results.records) if waiting else {}
    return {
        cell: _tuned(trials, cell not in waiting, {trial.lr for trial in reported.get(cell, ())})
        for cell, trials in _trials(results, results.tuning).items()
    }


def decided(results: Results) -> dict[str, float]:
    """Tuning trial to the rate chosen for its run, where every planned tuning trial of that run has a result."""
    choices = [choice for choice in tuned(results).values() if choice.settled]
    return {trial: choice.rate for choice in choices for trial in choice.tuning_trials if choice.rate is not None}


def at_chosen(results: Results) -> Results:
    """Return the results without reported trials at other rates than those that tie for their tuning seeds."""
    tuning = tuned(results)
    reported = []
    for record in results.records:
        choices = [(trial, tuning.get((record.task.label, results.label(record, trial)))) for trial in record.trials]
        kept = tuple(trial for trial, choice in choices if choice is None or trial.knobs.lr in choice.ties)
        reported += [replace(record, trials=kept)] if kept else []
    return replace(results, records=tuple(reported))


def scores(trials: Sequence[Trial]) -> dict[float, list[float]]:
    """Rate to the mean of each run on validation examples. A diverged run scores what a uniform guess does. More is
    better: a loss is counted below 0."""
    by_rate: dict[float, list[float]] = {trial.lr: [] for trial in trials}
    for trial in trials:
        if trial.share is not None:
            by_rate[trial.lr].append(trial.share)
    return by_rate


def _guess(record: GroupRecord) -> float:
    """Return the share that a uniform guess gets right at the trained sizes, or at all sizes if no trained one was
    measured."""
    task, (low, high) = record.task, record.task.trained
    sizes = [n for n in task.floors if low <= n <= high] or list(task.floors)
    guess = mean([uniform(task, n) for n in sizes]) if sizes else 0.0
    return metrics.merit(task.metric, guess)


def _tuned(trials: Sequence[Trial], settled: bool, reported: set[float]) -> Rates:
    """Choose a rate; one at which every trial diverged is chosen only if no other is left."""
    rates, alive = ({t.lr for t in trials}, {t.lr for t in trials if not t.diverged})
    among = rates if settled else rates & reported or rates
    among = among & alive or among
    seeds, ids = (tuple(sorted({getattr(trial, name) for trial in trials})) for name in ("seed", "id"))
    choice = _best_rate([trial for trial in trials if trial.lr in among])
    return replace(choice, tuning=seeds, tuning_trials=ids, unstable=not alive, settled=settled)
