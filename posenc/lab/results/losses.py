"""Whether training had ended when it stopped: the loss over the last tenth of the steps, and how it changed there.

A line is fitted by least squares through the points of the loss curve in the last tenth, and the one before them, each
the mean loss of a segment. Records hold the curve, so that older ones say it too. Of a run whose second scheme takes
over (`then`), only what came after the switch counts: a loss that jumps there and falls again has two ends.

A loss fell only if it fell by more than it scatters. How much a point scatters is read from how far each of the last
points lies beside the middle of its neighbours, in logarithms, in which a steady decay is a straight line; that gives
the standard error of the line, and over the root of the number of runs that of their median. Of flat curves with noise
of 5 to 30 % and 3 to 100 points at most 5 % pass for falling, be it one run or the median of two to ten (simulated).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from jaxtyping import Float

from posenc.lab.results.results import Results
from posenc.lab.results.statistics import cells
from posenc.lab.spec.run import Continuation
from posenc.lab.store.schema import GroupRecord, TrialRecord

TENTH = 0.1
FALLING = 0.05
"""A loss was still falling if over the last tenth it fell by more than this share of itself."""
LEARNED = 0.01
"""A loss below this, at which the right token has 99 % on average, has nothing left to fall."""
TINY = 1e-12
"""In the place of a loss of 0, which has no logarithm."""
ERRORS = 3
"""Standard errors by which a fall must exceed zero: a scatter from few points is itself uncertain."""
POINTS = 5
"""Points at the end of a curve, at least, from which the scatter is read, where it has as many."""


@dataclass(frozen=True)
class Ending:
    """The end of a loss curve."""

    loss: float
    """The mean over the last tenth of training."""
    slope: float
    """How much the loss changed over that tenth, along the fitted line; negative where it fell."""
    fall: float
    """The share of itself by which it fell; negative where it rose."""
    error: float = math.inf
    """The standard error of `fall`, from how points scatter; infinite for fewer than three points, which show none."""

    @property
    def falling(self) -> bool:
        """Whether more steps would probably have changed the result."""
        return self.fall > max(FALLING, ERRORS * self.error) and self.loss > LEARNED


def ending(trial: TrialRecord, switch: int = 0) -> Ending | None:
    """The end of a trial's loss curve; None where it diverged, or has no curve of two points after the step `switch`,
    at which another scheme took over."""
    points = _after(_points(trial.curve or {}), switch)
    if trial.outcome == "diverged" or len(points) < 2 or not trial.steps:
        return None
    step, loss = np.array(points, dtype=float).T
    part = step / trial.steps
    first = max(min(int(np.searchsorted(part, 1 - TENTH, side="right")) - 1, len(points) - 2), 0)
    last, ends = part[first:], loss[first:]
    steepness, height = np.polyfit(last - 1, ends, 1)
    slope, start = steepness * TENTH, height - steepness * TENTH
    fall = float(-slope / start) if start > 0 else 0.0
    error = TENTH * _scatter(loss[-max(len(last), POINTS) :]) / np.sqrt(((last - last.mean()) ** 2).sum())
    return Ending(float(ends.mean()), float(slope), fall, float(error))


def endings(results: Results) -> dict[str, Ending]:
    """Trial to the end of its loss curve, of all trials that have one."""
    every = ((record, trial) for record in (*results.records, *results.tuning) for trial in record.trials)
    return {trial.id: end for record, trial in every if (end := ending(trial, _switch(record, trial))) is not None}


def falling(results: Results) -> dict[tuple[str, str], float]:
    """Task and scheme to the share by which its loss still fell, the median over its reported runs, where that is more
    than `FALLING`."""
    found, rates = endings(results), {(c.task, c.scheme): c.rate for c in cells(results)}
    runs: dict[tuple[str, str], dict[str, Ending]] = {}
    for row in results.rows():
        if row.trial in found and rates[row.task, row.scheme] == row.lr:
            runs.setdefault((row.task, row.scheme), {})[row.trial] = found[row.trial]
    middle = {key: _middle(tuple(of.values())) for key, of in sorted(runs.items())}
    return {key: end.fall for key, end in middle.items() if end.falling}


def _middle(ends: Sequence[Ending]) -> Ending:
    """The medians over several runs, which scatter less than one run does by about the root of how many there are."""
    loss, slope, fall, error = (
        median(getattr(end, name) for end in ends) for name in ("loss", "slope", "fall", "error")
    )
    return Ending(loss, slope, fall, error / math.sqrt(len(ends)))


def _switch(record: GroupRecord, trial: TrialRecord) -> int:
    """The step at which the second scheme of a run took over; 0 where one scheme was trained alone."""
    if (then := record.run.get("then")) is None:
        return 0
    try:
        return round(Continuation.read(str(then)).share * trial.steps)
    except ValueError:  # of another version, or edited: nothing is known to have come after it
        return trial.steps


def _after(points: Sequence[tuple[float, float]], switch: int) -> Sequence[tuple[float, float]]:
    """The points whose whole segment came after a step: each is the mean since the point before it."""
    begins = [0, *(step for step, _ in points)]
    return [point for begin, point in zip(begins, points, strict=False) if begin >= switch]


def _scatter(loss: Float[np.ndarray, " points"]) -> float:
    """The standard deviation of a point's logarithm about a smooth curve, from second differences, whose variance is
    six times that of a point; infinite for fewer than three points."""
    bends = np.diff(np.log(np.maximum(loss, TINY)), 2)
    return float(np.sqrt((bends**2).mean() / 6)) if len(bends) else math.inf


def _points(curve: Mapping[str, Any]) -> list[tuple[float, float]]:
    """The finite points of a curve, whatever a file holds in its place."""
    step, loss = curve.get("step"), curve.get("loss")
    if not isinstance(step, list) or not isinstance(loss, list):
        return []
    pairs = [pair for pair in zip(step, loss, strict=False) if all(type(x) in (int, float) for x in pair)]
    return [pair for pair in pairs if np.isfinite(pair).all()]
