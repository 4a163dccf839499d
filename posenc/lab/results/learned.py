"""Rules for whether enough was learned of a task to call one scheme better than another beyond training. No jax.

If no scheme solves the trained sizes, or all losses still fell, results compare how fast schemes learn, and not how far
they carry. If all are at the highest floor, they compare guesses. A share is clear of a floor if it is above it by more
than three standard errors of the test set.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal

from posenc.lab.metrics import GAIN, LOSSES
from posenc.lab.results.floors import best_floor
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import TableCell, cells, summary
from posenc.lab.results.ties import TOLERANCE
from posenc.lab.store.schema import GroupRecord, TaskRecord

SOLVED = 0.95
"""The least median accuracy at every size trained on of a scheme that solves them."""
GAINED = 0.75
"""The bar of a gain: models have learned a source long before they match its optimal predictor."""
ERRORS = 3
"""A gap counts if it is larger than this many standard errors of the test set."""
Hindrance = Literal["", "unsolved", "falling", "both"]
"""Reason why schemes cannot be ranked beyond the trained sizes."""
WHY: dict[Hindrance, str] = {
    "both": "{no} solves the sizes trained on and {all} losses still fell, so this compares speed of learning; train"
    " longer",
    "unsolved": "{no} solves the sizes trained on, so {none} is called better beyond them",
    "falling": "{all} losses still fell, so this compares speed of learning; train longer",
}
"""The reasons in words, for `MANY` schemes or for a `PAIR`."""
MANY, PAIR = {"no": "no scheme", "none": "none", "all": "all"}, {"no": "neither", "none": "neither", "all": "both"}


def error(examples: float, *shares: float) -> float:
    """Three standard errors of a share over a number of examples, or of the difference between two shares.

    Examples are whole rows: tokens of one row are not independent.
    """
    return ERRORS * math.sqrt(sum(p * (1 - p) for p in shares) / max(examples, 1))


def above_floor(task: TaskRecord, sizes: Sequence[int], share: float, examples: int) -> bool:
    """Tell whether a share over some sizes is clear of the highest floor there. An unknown floor proves nothing, nor
    does that of a loss, whose error is not known."""
    floor = best_floor(task, sizes)
    return floor is None or task.metric in LOSSES or share > floor[1] + error(examples, floor[1])


def bar(metric: str, share: float) -> float:
    """The least share of a scheme that has learned a task, which of a gain is `GAINED`, whatever it is of others."""
    return GAINED if metric == GAIN else share


def at_floor(task: TaskRecord, compared: Collection[TableCell], sizes: Sequence[int]) -> bool:
    """Tell whether all these schemes are at the highest floor over some sizes."""
    runs = [(cell, list(cell.means(sizes).values())) for cell in compared]
    return not any(
        above_floor(task, sizes, summary(values).median, sum(cell.examples[n] for n in sizes)) for cell, values in runs
    )


def solves(cell: TableCell) -> bool:
    """Tell whether a scheme solves every trained size. A loss must be that of as much probability on right tokens; a
    gain must reach as much of what an exact loss leaves."""
    least = GAINED if cell.exact else bar(cell.metric, SOLVED)
    return all(_learned_share(cell, n, summary(cell.values[n]).median) >= least - TOLERANCE for n in cell.inside)


def _learned_share(cell: TableCell, size: int, median: float) -> float:
    if cell.metric not in LOSSES:
        return median
    unigram, bayes = cell.exact.get(size, (0.0, 0.0))
    return (unigram - median) / (unigram - bayes) if unigram > bayes else math.exp(-median * LOSSES[cell.metric])


def hindrance(compared: Collection[TableCell], falling: Collection[tuple[str, str]], beyond: bool = True) -> Hindrance:
    """Return the reason why these schemes of a task cannot be ranked; `falling` has task and scheme of falling losses.

    An unsolved size matters only beyond training. If no trained size was measured, it stays unknown.
    """
    measured = [cell for cell in compared if cell.inside and beyond]
    unsolved = bool(measured) and not any(map(solves, measured))
    fell = bool(compared) and all((cell.task, cell.scheme) in falling for cell in compared)
    if unsolved and fell:
        return "both"
    return "unsolved" if unsolved else "falling" if fell else ""


def nothing_learned(record: GroupRecord) -> tuple[int, float, float] | None:
    """Return the longest trained size, the median there and the highest floor, if nothing was learned. All trials of a
    record are then at a floor at every trained size. Otherwise, or if no trained size was evaluated, return None."""
    reported = tuple(replace(trial, role=None) for trial in record.trials)
    results = Results("group", (replace(record, trials=reported),))
    (task,) = results.tasks().values()
    if not (measured := all_at_floor(task, cells(results))):
        return None
    cell, n = max(measured, key=lambda pair: pair[1])
    floor = best_floor(task, [n])
    return None if floor is None else (n, summary(cell.values[n]).median, floor[1])


def all_at_floor(task: TaskRecord, compared: Collection[TableCell]) -> list[tuple[TableCell, int]]:
    """Return the cells of a task, each with a trained size at which it was measured, if all are at the floor there."""
    measured = [(cell, n) for cell in compared for n in cell.inside if cell.values[n]]
    return measured if all(at_floor(task, [cell], [n]) for cell, n in measured) else []
