"""Detection of training that had not ended: the fall of the loss over the last half of the steps.

The loss over the last tenth of the steps is compared with that over the tenth before their middle. Each is a mean of
logarithms, of points that are each the mean loss of a segment. Records hold the curve, older ones too. The last tenth
alone shows nothing: schedules have brought the learning rate down to a tenth or less by then, and every loss is nearly
flat. Over the last half a schedule of cosine still spends a quarter of its learning rate. A loss also falls because the
rate does. That of an average of all tokens, which cannot look anything up, fell by 7 and 8 %
(`experiments/averaging.py`). So a fall by more than a tenth is asked for.

In a run with `then`, only steps after the switch count, and the last half is half of those. A loss that jumps at the
switch and falls again has two ends.

A loss fell only if it fell by more than it scatters. The scatter of a point is its distance from the middle of its
neighbours, over the last half, in logarithms. In these a steady decay is a straight line. The scatter gives the
standard error of the difference, and over the root of the number of runs that of their median. In a simulation of flat
curves, with noise of 5 to 30 % and 3 to 60 points, at most 6 % pass for falling, for one run and for medians of three
to ten.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from posenc.lab.results.results import Results
from posenc.lab.results.statistics import TableCell, cells
from posenc.lab.results.ties import mean, median
from posenc.lab.spec.run import Continuation
from posenc.lab.store.schema import GroupRecord, TrialRecord

Point = tuple[float, float]
"""A step, and the mean loss of the segment that ended there."""
HALF, TENTH = 0.5, 0.1
"""Over which share of training a loss is judged, and over which its two ends are averaged."""
FALLING = 0.1
"""A loss was still falling if over the last half it fell by more than this share of itself."""
LEARNED = 0.01
"""A loss below this, at which the right token has 99 % on average, has nothing left to fall."""
TINY = 1e-12
"""Value that stands for a loss of 0, which has no logarithm."""
ERRORS = 3
"""Standard errors by which a fall must exceed zero: a scatter from few points is itself uncertain."""
POINTS = 5
"""Points at the end of a curve, at least, from which the scatter is read, where it has as many."""
SAID = f"the loss fell by more than {FALLING:.0%} over the last half of the steps, and by more than it scatters"
"""The rule in words."""


@dataclass(frozen=True)
class Ending:
    """The end of a loss curve."""

    loss: float
    """The mean over the last tenth of training."""
    fall: float
    """The share of itself by which it fell over the last half; negative where it rose."""
    error: float = math.inf
    """The standard error of that fall in logarithms, from how points scatter; infinite where too few show it."""

    @property
    def falling(self) -> bool:
        """Tell whether more steps would probably have changed the result."""
        fell = -math.log(max(1 - self.fall, TINY))
        return self.fall > FALLING and fell > ERRORS * self.error and self.loss > LEARNED


def ending(trial: TrialRecord, switch: int = 0) -> Ending | None:
    """Return the end of a trial's loss curve. Return None if it diverged, or has fewer than two points after the step
    `switch`, at which another scheme took over."""
    curve = points(trial.curve or {})
    own = points_after(curve, switch)
    if trial.outcome == "diverged" or len(own) < 2 or trial.steps <= switch:
        return None

    def share(point: Point) -> float:
        """Return how much of the training was done at a point."""
        return (point[0] - switch) / (trial.steps - switch)

    middle, end = (own[_tenth(own, at, share)] for at in (1 - HALF, 1.0))
    fell = mean(_logarithms(middle)) - mean(_logarithms(end))
    late = own[-max(len(own) - bisect.bisect_right(own, HALF, key=share), POINTS) :]
    scatter = _scatter(_logarithms(late if len(late) > 2 else curve[: len(curve) - len(own)]))
    error = scatter * math.sqrt(sum(1 / len(tenth) for tenth in (middle, end)))
    return Ending(mean([loss for _, loss in end]), -math.expm1(-fell), error)


def endings(results: Results) -> dict[str, Ending]:
    """Trial to the end of its loss curve, of all trials that have one."""
    pairs = results.recorded_trials()
    return {trial.id: end for record, trial in pairs if (end := ending(trial, switch_of(record, trial))) is not None}


def falling(results: Results, table: Iterable[TableCell] | None = None) -> dict[tuple[str, str], float]:
    """Return task and scheme to the share by which its loss still fell, the median over its reported runs, if it did. A
    caller that has the cells of the results may give them."""
    table = cells(results) if table is None else table
    rates, runs = {(cell.task, cell.scheme): cell.reported for cell in table}, dict[tuple[str, str], list[Ending]]()
    for record in results.records:
        for trial in record.trials:
            key = (record.task.label, results.label(record, trial))
            if trial.knobs.lr in rates[key] and (end := ending(trial, switch_of(record, trial))):
                runs.setdefault(key, []).append(end)
    middle = {key: _middle(of) for key, of in sorted(runs.items())}
    return {key: end.fall for key, end in middle.items() if end.falling}


def _middle(ends: Sequence[Ending]) -> Ending:
    """The medians over several runs, which scatter less than one run does by about the root of how many there are."""
    loss, fall, error = (median([getattr(end, name) for end in ends]) for name in ("loss", "fall", "error"))
    return Ending(loss, fall, error / math.sqrt(len(ends)))


def switch_of(record: GroupRecord, trial: TrialRecord) -> int:
    """The step at which the second scheme of a trial took over; 0 where one scheme was trained alone."""
    if (then := record.run.get("then")) is None:
        return 0
    try:
        return round(Continuation.read(str(then)).share * trial.steps)
    except ValueError:  # of another version, or edited: nothing is known to have come after it
        return trial.steps


def points_after(points: Sequence[Point], switch: int) -> Sequence[Point]:
    """The points whose whole segment came after a step: each is the mean since the point before it."""
    if not switch:
        return points
    begins = [0, *(step for step, _ in points)]
    return [point for begin, point in zip(begins, points, strict=False) if begin >= switch]


def _tenth(curve: Sequence[Point], end: float, share: Callable[[Point], float]) -> slice:
    """Return the points of the tenth of training that ends at a share of it. If there are none, return the first one
    that ends there or later."""
    last = bisect.bisect_right(curve, end + TINY, key=share)
    first = bisect.bisect_right(curve, end - TENTH + TINY, key=share)
    if first < last:
        return slice(first, last)
    later = min(bisect.bisect_left(curve, end - TINY, key=share), len(curve) - 1)
    return slice(later, later + 1)


def _logarithms(curve: Sequence[Point]) -> list[float]:
    """Return the logarithms of a curve's losses."""
    return [math.log(max(loss, TINY)) for _, loss in curve]


def _scatter(heights: Sequence[float]) -> float:
    """Return the standard deviation of a point's logarithm about a smooth curve, from second differences. Their
    variance is six times that of a point. Infinite for fewer than three points."""
    bends = [(c - 2 * b + a) ** 2 for a, b, c in zip(heights, heights[1:], heights[2:], strict=False)]
    return math.sqrt(mean(bends) / 6) if bends else math.inf


def points(curve: Mapping[str, Any]) -> list[Point]:
    """The finite points of a curve."""
    pairs = zip(curve.get("step", ()), curve.get("loss", ()), strict=False)
    return [pair for pair in pairs if None not in pair and math.isfinite(sum(pair))]
