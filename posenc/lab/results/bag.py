"""The exact floor `bag` of strings: how often the most frequent of some symbols occurs in a string of random ones.

A model that ignores order answers every place alike, and names the most frequent symbol at best. Tasks that permute a
random string, or write it again (reverse, duplicate, odds first, bucket sort), have this floor. No jax.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

NEGLIGIBLE = 1e-13


def most_frequent(symbols: int, sizes: Iterable[int]) -> float:
    """The expected share of the most frequent symbol in uniform random strings, the mean over sizes.

    >>> most_frequent(2, [2])
    0.75
    """
    every = sorted(sizes)
    if symbols < 1 or not every or every[0] < 1:
        raise ValueError(f"{symbols} symbols at sizes {every[:3]} make no strings; give one or more, and sizes from 1.")
    groups: dict[int, list[int]] = {}
    for n in every:
        groups.setdefault(n.bit_length(), []).append(n)
    return float(sum((_expected(symbols, group) / group).sum() for group in groups.values()) / len(every))


def _expected(symbols: int, sizes: list[int]) -> Float[np.ndarray, " sizes"]:
    """The mean count of the most frequent symbol: the sum over m of the probability that it is above m.

    Counts of symbols are independent Poisson counts, given their sum; the rate is free, and chosen for precision.
    """
    longest, rate = sizes[-1], max(1.0, float(np.mean(sizes)) / symbols)
    one, whole = _poisson(rate, longest), _poisson(rate * symbols, longest)[sizes]
    least = -(-sizes[0] // symbols)
    total = np.full(len(sizes), float(least))  # no string has fewer of its most frequent symbol
    for m in range(least, longest):
        counts = np.ones(1)
        for _ in range(symbols):
            counts = np.convolve(counts, one[: m + 1])[: longest + 1]
        above = 1 - np.pad(counts, (0, longest + 1 - len(counts)))[sizes] / whole
        total += above
        if m > longest / symbols and above.max() < NEGLIGIBLE:
            break
    return total


def _poisson(rate: float, most: int) -> Float[np.ndarray, " most+1"]:
    """The probabilities of 0 to `most` events."""
    return np.array([math.exp(k * math.log(rate) - rate - math.lgamma(k + 1)) for k in range(most + 1)])
