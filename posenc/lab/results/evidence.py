"""Evidence of our runs on a claim: the value of each run, the floors at its sizes, the schemes clear of them, and those
that learned the trained sizes.

A share is clear of a floor if it is above it by more than three standard errors of the test set. A whole row is one
example, since tokens of one row are not independent. All runs share the test set, so that their spread leaves this out.
A measure that a record did not count has no value, and is never taken for zero. A measure over sizes "beyond" or
"trained" is settled first, on the sizes that all compared schemes share. Unsettled, it is on those of all schemes of
its task. No jax.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from posenc.lab import metrics
from posenc.lab.results.floors import best_floor, floors_by, mean_floors, uniform
from posenc.lab.results.learned import bar, error
from posenc.lab.results.losses import points, points_after, switch_of
from posenc.lab.results.published import EPSILON, Measure
from posenc.lab.results.rates import by_seed
from posenc.lab.results.results import Results, grouped
from posenc.lab.results.sizes import average, other_places, shared
from posenc.lab.results.statistics import HOLDS, cells, summary
from posenc.lab.store.schema import TaskRecord, TrialRecord

SURE = 0.95
"""The probability of a right token at whose loss steps are counted."""
REPEATS = 3
"""The number of runs from which a band can meet a number, and a scheme be a positive control. One run has a band
without width, and two equal runs are easily had by luck."""
Values = Mapping[tuple[float, int], float]
"""Learning rate and seed to the value of a run."""


class Evidence:
    """Results as claims are held against them."""

    def __init__(self, results: Results):
        self.rates = {(cell.task, cell.scheme): cell.reported for cell in cells(results)}
        pairs = [(record, trial) for record in results.records for trial in record.trials]
        self._trials = grouped(((r.task.label, results.label(r, trial)), (r, trial)) for r, trial in pairs)
        self._values: dict[tuple[Measure, str], Values] = {}

    @property
    def tasks(self) -> list[str]:
        """The labels of all tasks with a result."""
        return sorted({task for task, _ in self._trials})

    def schemes(self, task: str) -> list[str]:
        """The schemes with a result on a task, by label."""
        return sorted(scheme for name, scheme in self._trials if name == task)

    def sizes(self, measure: Measure, schemes: Sequence[str] | None = None) -> tuple[int, ...]:
        """Return one set of sizes for all these schemes, or for all of the task. Each scheme was evaluated at them.
        They are longer than any trained size of the task in these results, or within all trained ranges. There may be
        none. Given sizes stay."""
        if isinstance(measure.over, tuple):
            return tuple(sorted(set(measure.over)))
        tasks = self._tasks(measure.task)
        compared = tasks if schemes is None else self._tasks(measure.task, schemes) or tasks
        return shared(measure.over, [task.trained for task in tasks], [task.floors for task in compared])

    def settled(self, measure: Measure, schemes: Sequence[str] | None = None) -> Measure:
        """The measure over these sizes."""
        return measure._replace(over=self.sizes(measure, schemes))

    def unshared(self, measure: Measure, schemes: Sequence[str]) -> str:
        """Why these schemes cannot be compared by a measure, although each has a result; else nothing."""
        each = [self._tasks(measure.task, [scheme]) for scheme in schemes]
        tasks = [task for of in each for task in of] if all(each) else []
        if tasks and not self.sizes(measure, schemes):
            where = "beyond all sizes trained on" if measure.over == "beyond" else "within all trained ranges"
            return f"no size {where} was evaluated in all runs that are compared"
        return other_places(task.first_beyond for task in tasks) if measure.metric == "beyond" else ""

    def runs(self, measure: Measure, scheme: str) -> Values:
        """The value of each run at every learning rate.

        A diverged run enters as a uniform guess, or as 0 if no record of its task knows that. A run that lacks one of
        the sizes, or did not count the metric, is left out.
        """
        measure = self.settled(measure)
        key, sizes = (measure, scheme), self.sizes(measure)
        if key not in self._values:
            by_run = {}
            for record, trial in self._trials.get((measure.task, scheme), ()):
                if values := _values(record.task, trial, sizes, measure.metric):
                    by_run[trial.knobs.lr, trial.knobs.seed] = average(values, sizes, measure.weights)
            self._values[key] = by_run
        return self._values[key]

    def values_at_chosen_rate(self, measure: Measure, scheme: str) -> dict[int, float]:
        """Seed to the median of its runs at the rates that tie in validation."""
        rates = self.rates.get((measure.task, scheme), ())
        return by_seed(self.runs(measure, scheme), rates) if rates else {}

    def highest(self, measure: Measure, scheme: str) -> float | None:
        """Return the highest floor of a scheme that is known by this metric, on average over the sizes. It is counted
        at the positions beyond the scheme's own training, and None if no floor is known."""
        task = self._task(measure, scheme)
        named = task and best_floor(task, self.sizes(measure), measure.weights)
        return named[1] if named else None

    def floors(self, measure: Measure) -> dict[str, float]:
        """Every floor that is known by this metric, on average over the sizes."""
        task, sizes = self._task(measure), self.sizes(measure)
        return {} if task is None else mean_floors(task, sizes, measure.weights)

    def margin(self, measure: Measure, scheme: str) -> float:
        """Return the margin above the highest floor from which a share is clear of it: three standard errors of a guess
        on the test rows. For a floor near 0 the guess is right once in all rows. Infinite if no run counted rows."""
        examples = self._examples(measure, scheme)
        if not examples:
            return math.inf
        return error(examples, min(max(self.highest(measure, scheme) or 0.0, 1 / examples), 1.0))

    def above(self, measure: Measure, scheme: str, value: float) -> bool:
        """Tell whether a share is clear of the highest floor of a scheme; an unknown floor is 0."""
        return value > (self.highest(measure, scheme) or 0.0) + self.margin(measure, scheme) + EPSILON

    def clear(self, measure: Measure, repeats: int = REPEATS) -> list[str]:
        """Return the positive controls: the schemes whose whole band, of at least `repeats` runs, is clear of the
        highest floor."""
        bands = {
            scheme: summary(self.values_at_chosen_rate(measure, scheme).values())
            for scheme in self.schemes(measure.task)
        }
        enough = {scheme: band for scheme, band in bands.items() if band.n >= repeats}
        return [scheme for scheme, band in enough.items() if self.above(measure, scheme, band.low)]

    def weakest(self, measure: Measure, scheme: str) -> tuple[int, float] | None:
        """Return the scheme's trained size with the lowest median by the metric, and this median. Return None if no
        trained size was evaluated. For `beyond`, which counts no position there, the task's own metric is used."""
        own = self._tasks(measure.task, [scheme])
        sizes = shared("trained", [task.trained for task in own], [task.floors for task in own])
        within = measure._replace(metric=None if measure.metric == "beyond" else measure.metric)
        each = {n: self.values_at_chosen_rate(within._replace(over=(n,)), scheme).values() for n in sizes}
        medians = {n: summary(values).median for n, values in each.items() if values}
        return min(medians.items(), key=lambda item: item[1], default=None)

    def least(self, measure: Measure) -> float:
        """The least median, by the metric of `weakest`, of a scheme that has learned the sizes trained on."""
        task = self._task(measure._replace(metric=None if measure.metric == "beyond" else measure.metric))
        return bar(task.metric, HOLDS) if task else HOLDS

    def sure(self, task: str, scheme: str) -> dict[int, float]:
        """Return seed to the steps until the training loss was that of 0.95 for every right token. A seed's number is
        the median over the reported rates. It is infinite if the loss never was that low, and missing without curves.
        In a run with `then`, steps count from the switch."""
        rates, steps = self.rates.get((task, scheme), ()), {}
        for record, trial in self._trials.get((task, scheme), ()):
            switch = switch_of(record, trial)
            if trial.knobs.lr in rates and (curve := points_after(points(trial.curve or {}), switch)):
                solved = (step - switch for step, loss in curve if loss <= -math.log(SURE))
                steps[trial.knobs.lr, trial.knobs.seed] = min(solved, default=math.inf)
        return by_seed(steps, rates) if steps else {}

    def tried(self, measure: Measure, scheme: str) -> tuple[float, ...]:
        """The learning rates at which a scheme was trained on a task."""
        return tuple(sorted({trial.knobs.lr for _, trial in self._trials.get((measure.task, scheme), ())}))

    def stable(self, measure: Measure, scheme: str) -> dict[int, float]:
        """Seed to the largest learning rate at which its run neither diverged nor stayed at the floor; 0 for none.

        A diverged run enters as a guess, which is not above the floor.
        """
        largest: dict[int, float] = {}
        for (rate, seed), value in sorted(self.runs(measure, scheme).items()):
            largest[seed] = rate if self.above(measure, scheme, value) else largest.get(seed, 0.0)
        return largest

    def examples(self, measure: Measure, scheme: str) -> int:
        """How many test examples there are of a size, at least."""
        pairs, over = self._trials.get((measure.task, scheme), ()), self.sizes(measure)
        sizes = [(trial.evaluations, n) for _, trial in pairs for n in over]
        return min((counts[n].get("rows", 0) for counts, n in sizes if n in counts), default=0)

    def _examples(self, measure: Measure, scheme: str) -> float:
        """How many test rows of equal weight an average over the sizes is worth; 0 where no run counted any."""
        sizes = self.sizes(measure)
        weights = {n: average([float(m == n) for m in sizes], sizes, measure.weights) for n in sizes}
        rows = {n: self.examples(measure._replace(over=(n,)), scheme) for n in sizes}
        return 1 / sum(w * w / rows[n] for n, w in weights.items()) if sizes and all(rows.values()) else 0.0

    def steps(self, task: str) -> int:
        """For how many steps a task was trained, at most."""
        trials = [trial for (name, _), pairs in self._trials.items() if name == task for _, trial in pairs]
        return max((trial.steps for trial in trials), default=0)

    def uncounted(self, measure: Measure) -> bool:
        """Tell whether a task was evaluated without any run that counted this metric."""
        pairs = [pair for (task, _), runs in self._trials.items() if task == measure.task for pair in runs]
        part = metrics.ratio(measure.metric or pairs[0][0].task.metric)[0] if pairs else ""
        counts = [counts for _, trial in pairs for counts in trial.evaluations.values()]
        return bool(counts) and not any(part in evaluation for evaluation in counts)

    def _tasks(self, task: str, schemes: Sequence[str] | None = None) -> list[TaskRecord]:
        """A task as the records of some schemes hold it, or of all."""
        wanted = self.schemes(task) if schemes is None else schemes
        group_records = [record for scheme in wanted for record, _ in self._trials.get((task, scheme), ())]
        return list({id(record): record.task for record in group_records}.values())

    def _task(self, measure: Measure, scheme: str | None = None) -> TaskRecord | None:
        """The task with its floors by the metric of a measure: those of a scheme, or else the first of each size."""
        tasks = self._tasks(measure.task, None if scheme is None else [scheme]) or self._tasks(measure.task)
        by_metric = [_by(task, measure.metric) for task in tasks]
        size_floors = {n: at for task in reversed(by_metric) for n, at in task.floors.items()}
        return replace(by_metric[0], floors=size_floors) if by_metric else None


def _by(task: TaskRecord, metric: str | None) -> TaskRecord:
    """A task with its floors by a metric."""
    if metric is None or metrics.ratio(metric) == metrics.ratio(task.metric):
        return task
    return replace(task, metric=metric, floors=floors_by(task, metric))


def _values(task: TaskRecord, trial: TrialRecord, sizes: Sequence[int], metric: str | None) -> list[float]:
    """The share right at each size; nothing where one of them was not measured or not counted."""
    by = metric or task.metric
    if trial.outcome == "diverged":
        by_metric = _by(task, by)
        return [uniform(by_metric, n) for n in sizes]
    size_counts = [trial.evaluations.get(n, {}) for n in sizes]
    if not all(metrics.ratio(by)[0] in counts for counts in size_counts):
        return []
    values = [metrics.share(counts, by) for counts in size_counts]
    return [] if any(map(math.isnan, values)) else values
