"""Gaps beyond the trained sizes between learning rates that tie in validation, which validation cannot see.

Two rates differ at a size if their medians do by more than three standard errors of the test set, and every seed that
ran at both has the same order. No jax.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from posenc.lab.metrics import LOSSES
from posenc.lab.results.learned import error
from posenc.lab.results.statistics import Runs, Summary, TableCell, summary


@dataclass(frozen=True)
class RateGap:
    """A scheme on a task whose tying rates differ beyond the sizes trained on."""

    task: str
    scheme: str
    size: int
    """The size at which two of them differ most."""
    by_rate: Mapping[float, Summary]
    """Rate to its runs at `size`."""
    tuning: bool
    """True if these are runs of the tuning seeds, since the reported ones ran at one of the rates alone."""

    @property
    def width(self) -> float:
        """The difference of the medians of the two rates that lie furthest apart."""
        medians = [s.median for s in self.by_rate.values()]
        return max(medians) - min(medians)


def rate_gap(cell: TableCell) -> RateGap | None:
    """Return the widest gap between the rates that tie for a scheme. Return None if they do not differ, or for losses,
    whose error is not known."""
    if cell.metric in LOSSES:
        return None
    tuning = len(cell.reported) < 2
    rates, runs = (cell.ties, cell.tuning_runs) if tuning else (cell.reported, cell.runs)
    by_size = {n: by_rate(runs[n], rates) for n in runs if n > cell.trained[1]}
    apart = [n for n, of in by_size.items() if len(of) > 1 and _apart(runs[n], of, cell.examples[n])]
    gaps = [RateGap(cell.task, cell.scheme, n, by_size[n], tuning) for n in apart]
    return max(gaps, key=lambda gap: gap.width, default=None)


def by_rate(runs: Runs, rates: Sequence[float]) -> dict[float, Summary]:
    """Rate to its runs in five numbers."""
    values = {rate: [value for (at, _), value in runs.items() if at == rate] for rate in rates}
    return {rate: summary(of) for rate, of in values.items() if of}


def _apart(runs: Runs, of: Mapping[float, Summary], examples: int) -> bool:
    """Tell whether the two rates with the lowest and the highest median differ."""
    low, high = (pick(of, key=lambda rate: of[rate].median) for pick in (min, max))
    seeds = {seed for at, seed in runs if at == low} & {seed for at, seed in runs if at == high}
    gap = of[high].median - of[low].median
    alike = all(runs[high, seed] > runs[low, seed] for seed in seeds)
    return alike and gap > error(examples, of[low].median, of[high].median)
