"""Mean ranks of all schemes over tasks, and which of them differ (Demšar, 2006, sections 3.2.2 to 3.2.4).

Friedman's test, with Iman and Davenport's correction, asks whether all rank alike. Nemenyi's critical difference then
parts pairs: two schemes differ at 5 % if their mean ranks do by at least that. It grows with the number of schemes,
since every pair is tested. Against one control, `control.against` parts more. Without jax.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from posenc.lab.results.control import TASKS, means, rank_error, ranks, shared
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import LEVEL

MOST = 20
"""Schemes of a diagram: with more, hardly any pair could differ, and no reader could follow the lines."""


@dataclass(frozen=True)
class Ranking:
    """All schemes, the best mean rank first."""

    schemes: tuple[str, ...]
    ranks: tuple[float, ...]
    """The mean over tasks of each scheme's place, 1 the best."""
    tasks: tuple[str, ...]
    alike: float | None
    """The p of Friedman's test that all rank alike; None for fewer than three schemes or `TASKS` tasks."""
    critical: float | None
    """The difference of mean ranks from which on two schemes differ; None for fewer than `TASKS` tasks."""

    @property
    def groups(self) -> tuple[tuple[int, int], ...]:
        """The first and the last of neighbours of which no two differ, as long as can be; those of one are left out."""
        if self.critical is None:
            return ()
        groups: list[tuple[int, int]] = []
        for first, rank in enumerate(self.ranks):
            last = max(n for n, other in enumerate(self.ranks) if other - rank < self.critical)
            if last > first and (not groups or last > groups[-1][1]):
                groups.append((first, last))
        return tuple(groups)


def ranking(results: Results) -> Ranking:
    """The schemes of these results by mean rank. Raises `ValueError` for more than `MOST`."""
    by_scheme = shared(results)
    if len(by_scheme) > MOST:
        raise ValueError(
            f"{results.name!r} has {len(by_scheme)} schemes, and a critical-difference diagram at most {MOST}, since"
            " it tests every pair; compare them with one control, by --control SCHEME."
        )
    tasks, table = tuple(next(iter(by_scheme.values()))), means(by_scheme)
    mean = ranks(table)
    order = sorted(range(len(by_scheme)), key=lambda n: (mean[n], list(by_scheme)[n]))
    enough = len(tasks) >= TASKS
    schemes, places = ([values[n] for n in order] for values in (list(by_scheme), mean.tolist()))
    alike = friedman(table) if enough and len(by_scheme) > 2 else None
    return Ranking(
        tuple(schemes), tuple(places), tasks, alike, critical(len(by_scheme), len(tasks)) if enough else None
    )


def friedman(table: Float[np.ndarray, "schemes tasks"]) -> float:
    """The p of Friedman's test that all schemes rank alike, with Iman and Davenport's correction."""
    from scipy.stats import f, friedmanchisquare

    schemes, tasks = table.shape
    if (table == table[0]).all():
        return 1.0
    chi = friedmanchisquare(*table).statistic
    if tasks * (schemes - 1) - chi < 1e-9:
        return 0.0  # every task ranks them in the same order
    statistic = (tasks - 1) * chi / (tasks * (schemes - 1) - chi)
    return float(f.sf(statistic, schemes - 1, (schemes - 1) * (tasks - 1)))


def critical(schemes: int, tasks: int) -> float:
    """Nemenyi's critical difference of mean ranks at 5 %."""
    from scipy.stats import studentized_range

    q = studentized_range.ppf(LEVEL, schemes, math.inf) / math.sqrt(2)
    return float(q * rank_error(schemes, tasks))


def spans(groups: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """The groups with the line on which each is drawn, so that no two on one line overlap."""
    ends: list[int] = []
    segments = []
    for first, last in groups:
        line = next((n for n, end in enumerate(ends) if end < first), len(ends))
        ends[line:] = [last, *ends[line + 1 :]]
        segments.append((first, last, line))
    return segments
