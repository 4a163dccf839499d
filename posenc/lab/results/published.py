"""What was published, as data beside the experiment that tests it, and the verdict on it. No jax.

An experiment file holds `published = [Published(...), Order(...)]`. A verdict is one of

    agrees     a number: our interval, widened by the tolerance on both sides, meets what was published;
               an order: the whole interval of paired differences lies above the tolerance
    differs    a number: it does not; an order: the whole interval lies below minus the tolerance
    open       an order whose interval holds neither
    not run    no committed record holds it

Our interval is that of `statistics.summary`: the range below six runs, the exact 95 % interval of the median
from six on, at the learning rate chosen on validation examples. A published best of several runs, which no interval
bounds, is held against the best of all our runs at all rates; median and interval stand beside it. A verdict is on our
setting: where that is smaller than the published one, "differs" says that the number does not carry over, and not that
it was wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from posenc.lab.results import quadrature
from posenc.lab.results.quadrature import Rule, average
from posenc.lab.results.results import Results, best_floor, uniform
from posenc.lab.results.statistics import Summary, cells, summary
from posenc.lab.store import records
from posenc.lab.store.schema import TaskRecord

AGREES, DIFFERS, OPEN, NOT_RUN = "agrees", "differs", "open", "not run"
VERDICTS = (AGREES, DIFFERS, OPEN, NOT_RUN)
NEAR = 0.02
"""So near to a guess without the tokens a number shows no learning."""
ALL = "all tasks"
"""In the place of a task: the mean reciprocal rank over all tasks of an experiment."""
Over = Literal["beyond", "trained"] | tuple[int, ...]


@dataclass(frozen=True)
class Published:
    """A number that was reported, as a share right from 0 to 1; error rates are told as what they leave."""

    task: str
    """As results label it."""
    scheme: str
    """As results label it, with the settings that vary: "nope (norm=post)"."""
    value: float
    source: str
    metric: str | None = None
    """"token", "exact", "last" or "beyond"; the task's own unless given."""
    tolerance: float = 0.02
    of: Literal["median", "mean", "best"] = "median"
    """What theirs is of their runs."""
    runs: int | None = None
    """How many runs theirs rests on, where that is known."""
    over: Over = "beyond"
    """Averaged over the sizes longer than any trained on, over those within the range, or over these."""
    weights: Rule = "equal"
    """How these sizes enter the average, of ours and of floors: "trapezoid" where theirs is over every size of a range,
    of which ours evaluates a few."""
    relation: Literal["is", "at least", "at most"] = "is"
    floor: float | None = None
    """What the best guess without the tokens gets right at the sizes of theirs; that of ours unless given."""

    def __post_init__(self):
        quadrature.check(self.weights)
        if not (0 <= self.value <= 1 and 0 <= self.tolerance <= 1):
            raise ValueError(f"{self.value} with a tolerance of {self.tolerance} was given; shares are from 0 to 1.")
        if self.relation != "is" and self.of == "best":
            raise ValueError(f"{self.relation} {self.value} is a bound, and the best of runs is a number; leave one.")


@dataclass(frozen=True)
class Order:
    """A report that one scheme does better than another on a task."""

    task: str
    first: str
    second: str
    source: str
    metric: str | None = None
    tolerance: float = 0.01
    over: Over = "beyond"
    weights: Rule = "equal"

    def __post_init__(self):
        quadrature.check(self.weights)
        if self.first == self.second:
            raise ValueError(f"{self.first!r} is said to be above itself; give two schemes.")


@dataclass(frozen=True)
class Reproduction:
    """What was published, what we found, and whether they agree."""

    published: Published | Order
    ours: Summary
    """Of our runs at the chosen rate, or of their paired differences; n is 0 where nothing was run."""
    floor: float | None
    """What the best guess without the tokens gets right, by the task's own metric: at their sizes if known, or ours."""
    verdict: str
    best: float | None = None
    """Of all our runs, at every rate: what is held against a published best."""
    best_of: int | None = None
    """Of how many runs that is the best."""

    @property
    def explained(self) -> bool:
        """Whether what was published is no more than a guess without the tokens gets."""
        s = self.published
        exact = isinstance(s, Published) and s.relation == "is" and self.floor is not None
        return exact and s.value <= self.floor + NEAR + 1e-9


def findings(published: Sequence[Published | Order], results: Results | None) -> tuple[Reproduction, ...]:
    """A verdict on each thing published, from results, or from none."""
    rates = {} if results is None else {(c.task, c.scheme): c.rate for c in cells(results)}
    return tuple(_finding(one, results, rates) for one in published)


def _finding(published: Published | Order, results: Results | None, rates: dict) -> Reproduction:
    if results is None:
        return Reproduction(published, summary(()), getattr(published, "floor", None), NOT_RUN)
    if isinstance(published, Order):
        ours = summary(_differences(published, results, rates))
        return Reproduction(published, ours, None, _order(ours, published.tolerance))
    floor = _floor(published, results)
    if published.task == ALL:
        chosen: Collection[float] = _ranks(published, results, rates).values()
    else:
        chosen = _measured(published, results, published.scheme, rates.get((published.task, published.scheme))).values()
    ours = summary(chosen)
    if published.of != "best" or not ours.n:
        return Reproduction(published, ours, floor, _number(ours.n, ours.low, ours.high, published))
    every = chosen if published.task == ALL else _measured(published, results, published.scheme, None).values()
    best = max(every)
    return Reproduction(published, ours, floor, _number(ours.n, best, best, published), best, len(every))


def _number(n: int, least: float, most: float, published: Published) -> str:
    if not n:
        return NOT_RUN
    low = 0.0 if published.relation == "at most" else published.value
    high = 1.0 if published.relation == "at least" else published.value
    slack = published.tolerance + 1e-9  # 0.52 - 0.5 is more than 0.02 in floating point
    return AGREES if least - slack <= high and low <= most + slack else DIFFERS


def _order(gaps: Summary, tolerance: float) -> str:
    if not gaps.n:
        return NOT_RUN
    return AGREES if gaps.low > tolerance else DIFFERS if gaps.high < -tolerance else OPEN


def _differences(published: Order, results: Results, rates: dict) -> list[float]:
    """First less second, paired by seed, which share their data."""
    a, b = (
        {seed: value for (_, seed), value in found.items()}
        for found in (
            _measured(published, results, scheme, rates.get((published.task, scheme)))
            for scheme in (published.first, published.second)
        )
    )
    return [a[seed] - b[seed] for seed in sorted(a.keys() & b.keys())]


def _measured(
    published: Published | Order, results: Results, scheme: str, rate: float | None, task: str | None = None
) -> dict[tuple[float, int], float]:
    """Learning rate and seed to the mean over the sizes asked for; without a rate, at every rate.

    A diverged run enters as a uniform guess, and without any whole answer.
    """
    found = {}
    task, metric = task or published.task, published.metric
    for record in results.records:
        about = record.task
        sizes = _sizes(about, published.over)
        for trial in record.trials:
            key = trial.knobs.lr, trial.knobs.seed
            if about.label != task or results.label(record, trial) != scheme or rate not in (None, key[0]):
                continue
            values = []
            if trial.outcome == "diverged":
                values = [uniform(about, n) if metric in (None, about.metric) else 0.0 for n in sizes]
            elif all(n in trial.evaluations for n in sizes):
                values = [records.share(trial.evaluations[n], metric or about.metric) for n in sizes]
            if values:
                found[key] = average(values, sizes, published.weights)
    return found


def _sizes(task: TaskRecord, over: Over) -> list[int]:
    low, high = task.trained
    if isinstance(over, tuple):
        return sorted(set(over))
    return [n for n in sorted(task.floors) if (n > high if over == "beyond" else low <= n <= high)]


def _ranks(published: Published, results: Results, rates: dict) -> dict[int, float]:
    """Seed to the mean, over tasks, of one over the scheme's rank among all schemes; equals share the mean rank."""
    tasks, schemes = sorted({t for t, _ in rates}), sorted({s for _, s in rates})
    of: dict[int, list[float]] = {}
    for task in tasks:
        every = [_measured(published, results, s, rates.get((task, s)), task) for s in schemes]
        by_seed = [{seed: value for (_, seed), value in found.items()} for found in every]
        for seed in set.intersection(*map(set, by_seed)) if published.scheme in schemes else ():
            values = [found[seed] for found in by_seed]
            ours = values[schemes.index(published.scheme)]
            rank = 1 + sum(v > ours for v in values) + (sum(v == ours for v in values) - 1) / 2
            of.setdefault(seed, []).append(1 / rank)
    return {seed: float(np.mean(ranks)) for seed, ranks in sorted(of.items()) if len(ranks) == len(tasks)}


def _floor(published: Published, results: Results) -> float | None:
    if published.floor is not None:
        return published.floor
    task = next((r.task for r in results.records if r.task.label == published.task), None)
    if task is None or published.metric not in (None, task.metric):
        return None
    best = best_floor(task, _sizes(task, published.over), published.weights)
    return best[1] if best else None


def counted(found: Iterable[Reproduction]) -> dict[str, int]:
    """How often each verdict was given."""
    given = [one.verdict for one in found]
    return {verdict: given.count(verdict) for verdict in VERDICTS}
