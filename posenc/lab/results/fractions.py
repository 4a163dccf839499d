"""Shares as fractions, so that exact ties are ties: a float mean of .1, .2 and .3 is another than one of .3, .2 and .1.

Values stay fractions through means, medians and differences. Their floats are rounded once, so that equal fractions are
equal floats too, which ranks and tests of SciPy compare. No jax.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction

LARGEST = 5 * 10**7
"""The largest denominator that is looked for: two fractions up to it never share the nearest float below 1."""


def simplest(value: float | Fraction) -> Fraction:
    """Return the simplest fraction whose nearest float is this value, or the float as it is where that has none.

    >>> simplest(0.1) + simplest(0.2)
    Fraction(3, 10)
    """
    if isinstance(value, Fraction):
        return value
    exact = Fraction(float(value))
    near = exact.limit_denominator(LARGEST)
    return near if float(near) == value else exact


def mean(values: Collection[float | Fraction]) -> Fraction:
    """Return the exact mean."""
    return sum(map(simplest, values), Fraction(0)) / len(values)


def median(values: Collection[float | Fraction]) -> Fraction:
    """Return the exact median."""
    ordered = sorted(map(simplest, values))
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
