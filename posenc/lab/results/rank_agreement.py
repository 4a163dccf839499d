"""Ranks among schemes: free of the scale of a setting, so that a small one can be held against a large one. No jax.

The mean reciprocal rank of a scheme over tasks, as papers report it, and Spearman's rank correlation of what was
published with what we found: with each published column, which is one task of one publication by several schemes, held
against our runs at the sizes that all of them share, and with the whole table as the excess over the highest floor on
either side, since tasks differ in how much a guess gets; what is below a floor has an excess of 0, since it shows no
learning.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from posenc.lab.results.evidence import Evidence
from posenc.lab.results.published import ALL, Measure, Order, Published
from posenc.lab.results.results import grouped
from posenc.lab.results.statistics import DRAWS, LEVEL, summary

FEWEST = 4
"""Schemes from which on ranks are correlated: three have six orders."""
WHOLE = "whole table"
"""In the place of a column: all of them together."""


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's rank correlation of published numbers with the medians of our runs."""

    column: str
    """The task, or `WHOLE`."""
    source: str
    """The publication."""
    measure: Measure | None
    """What is measured in the column; None of the whole table."""
    schemes: int
    cells: int
    """How many numbers are compared: of a column, as many as schemes, or none where their runs share no size."""
    runs: int
    """Our runs of a cell, at least."""
    value: float | None
    """None for fewer than `FEWEST` schemes, or where all are equal."""
    low: float | None
    """The 95 % interval of a bootstrap over our runs; below six runs it covers less than that."""
    high: float | None


@dataclass(frozen=True)
class _Cell:
    """A published share beside those of our runs, and the highest floor at the sizes of each."""

    scheme: str
    theirs: float
    runs: Float[np.ndarray, " n"]
    floors: tuple[float, float] = (0.0, 0.0)

    @property
    def excess(self) -> _Cell:
        """What is above the floor, on either side."""
        below, at = self.floors
        return _Cell(self.scheme, max(self.theirs - below, 0.0), np.maximum(self.runs - at, 0.0))


def rank_correlations(claims: Iterable[Published | Order], evidence: Evidence) -> tuple[RankCorrelation, ...]:
    """One for each published column of which we ran anything, and one for the whole table of several columns.

    Equal numbers share the mean of their ranks. Bounds and our own predictions do not count.
    """
    numbers = (c for c in claims if isinstance(c, Published) and c.relation == "is" and c.origin == "published")
    ran = (claim for claim in numbers if claim.task == ALL or claim.scheme in evidence.schemes(claim.task))
    columns = grouped(((claim.source, claim.measure), claim) for claim in ran)
    correlations: list[RankCorrelation] = []
    tables: dict[str, list[list[_Cell]]] = {}
    for (source, measure), column in columns.items():
        apart = evidence.unshared(measure, [claim.scheme for claim in column])
        if cells := [] if apart else _cells(column, evidence):
            correlations.append(_correlated((measure.task, source, measure), cells))
            tables.setdefault(source, []).extend([] if measure.task == ALL else [cells])
        elif apart:
            correlations.append(RankCorrelation(measure.task, source, measure, len(column), 0, 0, None, None, None))
    for source, columns_of in tables.items():
        if len(columns_of) > 1:
            all_cells = [cell.excess for cells in columns_of for cell in cells]
            correlations.append(_correlated((WHOLE, source, None), all_cells))
    return tuple(correlations)


def spearman(
    first: Float[np.ndarray, "*draws n"], second: Float[np.ndarray, "*draws n"]
) -> Float[np.ndarray, "*draws"]:
    """Spearman's rank correlation along the last axis, ties at the mean of their ranks; NaN where all are equal.

    Without SciPy, whose statistics take most of a second to import.
    """
    a, b = map(_centred_ranks, (first, second))
    spread = np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    return np.where(spread > 0, (a * b).sum(-1) / np.where(spread > 0, spread, 1.0), np.nan)


def _centred_ranks(values: Float[np.ndarray, "*draws n"]) -> Float[np.ndarray, "*draws n"]:
    """Ranks less their mean: half of how many values are below, less those above."""
    each, others = values[..., :, None], values[..., None, :]
    return ((others < each).sum(-1) - (others > each).sum(-1)) / 2


def reciprocal_ranks(claim: Published, evidence: Evidence) -> dict[int, float]:
    """Seed to the mean, over tasks, of one over the scheme's rank among all schemes; equals share the mean rank, and so
    do all that are at the floor. A scheme that is at the floor on all these tasks has none.

    A task on which no scheme is clear of the floor ranks noise, so that it is left out.
    """
    measures = [] if claim.scheme in unranked(claim, evidence) else live(claim, evidence)
    of: dict[int, list[float]] = {}
    for measure in measures:
        by_scheme = {scheme: _clear(measure, scheme, evidence) for scheme in evidence.schemes(measure.task)}
        for seed in set.intersection(*map(set, by_scheme.values())) if claim.scheme in by_scheme else ():
            values = [by_seed[seed] for by_seed in by_scheme.values()]
            ours = by_scheme[claim.scheme][seed]
            rank = 1 + sum(v > ours for v in values) + (sum(v == ours for v in values) - 1) / 2
            of.setdefault(seed, []).append(1 / rank)
    return {seed: float(np.mean(ranks)) for seed, ranks in sorted(of.items()) if len(ranks) == len(measures)}


def _clear(measure: Measure, scheme: str, evidence: Evidence) -> dict[int, float]:
    """Seed to the value of each run at the chosen rate; the same, below all others, for each that is at the floor."""
    values = evidence.values_at_chosen_rate(measure, scheme)
    return {seed: value if evidence.above(measure, scheme, value) else -1.0 for seed, value in values.items()}


def unranked(claim: Published, evidence: Evidence) -> set[str]:
    """The schemes whose median is at the floor on every task that has a scheme clear of it: they tie, and have no
    rank."""
    measures = live(claim, evidence)
    everywhere = set[str].intersection(*(set(evidence.schemes(m.task)) for m in measures)) if measures else set[str]()

    def learned(measure: Measure, scheme: str) -> bool:
        return evidence.above(measure, scheme, summary(evidence.values_at_chosen_rate(measure, scheme).values()).median)

    return {scheme for scheme in everywhere if not any(learned(m, scheme) for m in measures)}


def live(claim: Published, evidence: Evidence) -> list[Measure]:
    """The tasks, as a claim over all tasks measures them, on which some scheme is clear of the floor; in few runs too,
    since a rank of few runs is open."""
    measures = [evidence.settled(claim.measure._replace(task=task)) for task in evidence.tasks]
    return [measure for measure in measures if evidence.clear(measure, repeats=1)]


def _cells(column: Sequence[Published], evidence: Evidence) -> list[_Cell]:
    """The numbers of a column of which we ran anything, all at the same sizes."""
    measure = evidence.settled(column[0].measure, [claim.scheme for claim in column])
    cells = []
    for claim in column:
        over_all = claim.task == ALL
        runs = reciprocal_ranks(claim, evidence) if over_all else evidence.values_at_chosen_rate(measure, claim.scheme)
        ours = 0.0 if over_all else evidence.highest(measure, claim.scheme) or 0.0
        if runs:
            floors = (ours if claim.floor is None else claim.floor, ours)
            cells.append(_Cell(claim.scheme, claim.share, np.array(tuple(runs.values()), float), floors))
    return cells


def _correlated(column: tuple[str, str, Measure | None], cells: Sequence[_Cell]) -> RankCorrelation:
    """The correlation of medians; draws in which all of ours are equal count as none."""
    schemes, least = len({cell.scheme for cell in cells}), min(len(cell.runs) for cell in cells)
    sizes = (schemes, len(cells), least)
    theirs = np.array([cell.theirs for cell in cells])
    value = float(spearman(theirs, np.array([summary(cell.runs).median for cell in cells])))
    if schemes < FEWEST or not np.isfinite(value):
        return RankCorrelation(*column, *sizes, None, None, None)
    rng = np.random.default_rng(0)
    resampled = (cell.runs[rng.integers(0, len(cell.runs), (DRAWS, len(cell.runs)))] for cell in cells)
    medians = np.stack([np.median(runs, -1) for runs in resampled], -1)
    correlations = np.nan_to_num(spearman(np.broadcast_to(theirs, medians.shape), medians))
    low, high = np.quantile(correlations, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return RankCorrelation(*column, *sizes, value, float(low), float(high))
