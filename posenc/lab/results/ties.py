"""Numbers that tie, and tests of ranks that respect ties. No jax; NumPy and SciPy are imported where they are needed.

A float mean of .1, .2 and .3 differs from one of .3, .2 and .1. Different shares of up to a million examples differ by
more than a billionth of a thousandth. So numbers nearer than `TOLERANCE` are equal. Nothing is rounded: a median of
rounded shares would be another number.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence

TOLERANCE = 1e-12
"""Two numbers that differ by no more tie."""


def difference(first: float, second: float) -> float:
    """Return first less second, 0 where they tie.

    >>> difference(0.1 + 0.2, 0.3)
    0.0
    """
    gap = first - second
    return 0.0 if abs(gap) <= TOLERANCE else gap


def levels(values: Sequence[float]) -> list[int]:
    """Return the rank of each value among the distinct ones, from 0; those that tie share it.

    >>> levels([0.3, 0.1, 0.1 + 0.2])
    [1, 0, 1]
    """
    order, rank, ranks = _ascending(values), 0, [0] * len(values)
    for before, i in itertools.pairwise(order):
        rank += values[i] - values[before] > TOLERANCE
        ranks[i] = rank
    return ranks


def _ascending(values: Sequence[float]) -> list[int]:
    """Return the indices of values from the least; equals keep their order."""
    return sorted(range(len(values)), key=values.__getitem__)


def mean(values: Collection[float]) -> float:
    """Return the mean, whatever the order of the values."""
    return math.fsum(values) / len(values)


def median(values: Collection[float]) -> float:
    """Return the median."""
    ordered = sorted(values)
    return math.fsum((ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2])) / 2


def wilcoxon(gaps: Sequence[float]) -> float:
    """Return the two-sided p of the signed-rank test.

    Equal sizes share the mean of their ranks, and gaps of 0, which have no sign, are ranked and then left out (Pratt,
    1959). SciPy takes the normal approximation where gaps tie and there are more than a dozen.
    """
    import numpy as np
    from scipy.stats import rankdata

    gaps = [difference(gap, 0.0) for gap in gaps]
    doubled = [round(2 * rank) for rank in rankdata(levels([abs(gap) for gap in gaps]))]
    signed = [(rank, gap > 0) for rank, gap in zip(doubled, gaps, strict=True) if gap]
    total, above = sum(rank for rank, _ in signed), sum(rank for rank, positive in signed if positive)
    chance = np.zeros(total + 1)  # of each sum of positive ranks, over all choices of signs
    chance[0] = 1.0
    for rank, _ in signed:
        chance[rank:] = (chance[rank:] + chance[: len(chance) - rank]) / 2
        chance[:rank] /= 2
    return min(1.0, 2 * float(chance[: min(above, total - above) + 1].sum()))


def holm(p: Sequence[float]) -> list[float]:
    """Return values of p after Holm's correction for how many there are (Holm, 1979)."""
    most, corrected = 0.0, [0.0] * len(p)
    for place, i in enumerate(_ascending(p)):
        most = max(most, min(1.0, (len(p) - place) * p[i]))
        corrected[i] = most
    return corrected
