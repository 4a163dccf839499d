"""The exact floor `bag` of strings: how often the most frequent of some symbols occurs in a string of random ones.

A model that ignores order answers every place alike, and names the most frequent symbol at best. Tasks that permute a
random string, or write it again (reverse, duplicate, odds first, bucket sort), have this floor. No jax.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float

NEGLIGIBLE = 1e-16
"""A probability that is left out."""
REACH, SPARE = 15, 40
"""So many standard deviations, and so many more, from the mean a Poisson count has no probability above 1e-45."""


def most_frequent(symbols: int, sizes: Iterable[int]) -> float:
    """The expected share of the most frequent symbol in uniform random strings, the mean over sizes.

    >>> round(most_frequent(2, [2]), 12)
    0.75
    """
    ordered = sorted(sizes)
    if symbols < 1 or not ordered or ordered[0] < 1:
        raise ValueError(
            f"{symbols} symbols at sizes {ordered[:3]} make no strings; give one or more, and sizes from 1."
        )
    return float(sum((_expected(symbols, group) / group).sum() for group in _alike(ordered)) / len(ordered))


def _alike(sizes: Sequence[int]) -> list[list[int]]:
    """Groups of sizes so near to one another that one rate serves all: within two standard deviations of a sum."""
    groups: list[list[int]] = []
    for n in sizes:
        if not groups or n - groups[-1][0] > 2 * math.sqrt(groups[-1][0]):
            groups.append([])
        groups[-1].append(n)
    return groups


def _expected(symbols: int, sizes: list[int]) -> Float[np.ndarray, " sizes"]:
    """The mean count of the most frequent symbol: the sum over m of the probability that it is above m.

    Counts of symbols are independent Poisson counts, given their sum; the rate is free, and that of the sizes keeps the
    sum likely. Sums of counts up to m are a power of one spectrum. It is as long as a sum reaches, so that what wraps
    round has no probability.
    """
    rate = float(np.mean(sizes)) / symbols
    low, probs = _poisson(rate)
    _, sum_probs = _poisson(rate * symbols, sizes)
    length = 1 << (len(probs) + 2 * _reach(rate * symbols)).bit_length()
    at = (np.array(sizes) - symbols * low) % length
    # at least the probability that some count is so high
    rest = symbols * np.cumsum(probs[::-1])[::-1] / sum_probs.min()
    least = -(-sizes[0] // symbols)
    total = np.full(len(sizes), float(least))  # no string has fewer of its most frequent symbol
    for kept in range(least - low + 1, len(probs)):
        if rest[kept] < NEGLIGIBLE:
            break
        sums = np.fft.irfft(np.fft.rfft(probs[:kept], length) ** symbols, length)
        total += np.clip(1 - sums[at] / sum_probs, 0, 1)
    return total


def _poisson(rate: float, at: Sequence[int] | None = None) -> tuple[int, Float[np.ndarray, " counts"]]:
    """The probabilities of some counts, or of all that have any, from the least of them on."""
    counts = range(max(0, int(rate) - _reach(rate)), int(rate) + _reach(rate)) if at is None else at
    return counts[0], np.array([math.exp(k * math.log(rate) - rate - math.lgamma(k + 1)) for k in counts])


def _reach(rate: float) -> int:
    """How far from its mean a Poisson count goes."""
    return int(REACH * math.sqrt(rate)) + SPARE
