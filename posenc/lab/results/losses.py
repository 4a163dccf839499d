"""Whether training had ended when it stopped: the loss over the last tenth of the steps, and how it changed there.

A line is fitted by least squares through the points of the loss curve in the last tenth, and the one before them, each
the mean loss of a segment. Records hold the curve, so that older ones say it too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from posenc.lab.results.results import Results
from posenc.lab.results.statistics import cells
from posenc.lab.store.schema import TrialRecord

TENTH = 0.1
FALLING = 0.05
"""A loss was still falling if over the last tenth it fell by more than this share of itself."""
LEARNED = 0.01
"""A loss below this, at which the right token has 99 % on average, has nothing left to fall."""


@dataclass(frozen=True)
class Ending:
    """The end of a loss curve."""

    loss: float
    """The mean over the last tenth of training."""
    slope: float
    """How much the loss changed over that tenth, along the fitted line; negative where it fell."""
    fall: float
    """The share of itself by which it fell; negative where it rose."""

    @property
    def falling(self) -> bool:
        """Whether more steps would probably have changed the result."""
        return self.fall > FALLING and self.loss > LEARNED


def ending(trial: TrialRecord) -> Ending | None:
    """The end of a trial's loss curve; None where it diverged, or has no curve of two points."""
    points = _points(trial.curve or {})
    if trial.outcome == "diverged" or len(points) < 2 or not trial.steps:
        return None
    step, loss = np.array(points, dtype=float).T
    part = step / trial.steps
    first = min(int(np.searchsorted(part, 1 - TENTH, side="right")) - 1, len(points) - 2)
    part, loss = part[max(first, 0) :], loss[max(first, 0) :]
    steepness, height = np.polyfit(part - 1, loss, 1)
    slope, start = steepness * TENTH, height - steepness * TENTH
    return Ending(float(loss.mean()), float(slope), float(-slope / start) if start > 0 else 0.0)


def endings(results: Results) -> dict[str, Ending]:
    """Trial to the end of its loss curve, of all trials that have one."""
    every = (trial for record in (*results.records, *results.tuning) for trial in record.trials)
    return {trial.id: end for trial in every if (end := ending(trial)) is not None}


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
    """The medians over several runs."""
    return Ending(*(median(getattr(end, name) for end in ends) for name in ("loss", "slope", "fall")))


def _points(curve: Mapping[str, Any]) -> list[tuple[float, float]]:
    """The finite points of a curve, whatever a file holds in its place."""
    step, loss = curve.get("step"), curve.get("loss")
    if not isinstance(step, list) or not isinstance(loss, list):
        return []
    pairs = [pair for pair in zip(step, loss, strict=False) if all(type(x) in (int, float) for x in pair)]
    return [pair for pair in pairs if np.isfinite(pair).all()]
