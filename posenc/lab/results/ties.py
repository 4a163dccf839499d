"""Numbers rounded to fourteen digits, so that equal sums of shares are equal whatever their order. No jax.

A float mean of .1, .2 and .3 is another than one of .3, .2 and .1. Shares of up to a million examples differ by more
than is rounded here.
"""

from __future__ import annotations

import math
from collections.abc import Collection

DIGITS = 14


def rounded(value: float) -> float:
    """Return the value to fourteen digits.

    >>> rounded(0.1 + 0.2) == 0.3
    True
    """
    return round(float(value), DIGITS)


def mean(values: Collection[float]) -> float:
    """Return the mean, rounded."""
    return rounded(math.fsum(values) / len(values))


def median(values: Collection[float]) -> float:
    """Return the median, rounded."""
    ordered = sorted(values)
    return rounded((ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2)
