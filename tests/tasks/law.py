"""Small laws that many tasks share, exact and by hand."""

import itertools
import math

import numpy as np


def words(symbols, n):
    return list(itertools.product(range(symbols), repeat=n))


def even(prompts):
    prompts = list(prompts)
    return {tuple(p): 1 / len(prompts) for p in prompts}


def strings(symbols):
    return lambda n: even(words(symbols, n))


def best(chance):
    """Of a law of places and answers in digits: what one digit throughout gets right, and one answer at one place."""
    same = [sum(p for (_, answer), p in chance.items() if set(answer) == {digit}) for digit in "0123456789"]
    return max(same), max(chance.values())


def most_frequent(symbols, n):
    """E[largest count] / n of n uniform symbols, from the exact law of the largest."""
    below = [1.0]
    for top in range(1, n + 1):
        # n! [z^n] (Σ_{c≤top} z^c / c!)^symbols / symbols^n is P(largest ≤ top); logs keep the factorials in range
        series = np.zeros(n + 1)
        series[0] = 1.0
        one = np.array([1 / math.factorial(c) if c <= top else 0.0 for c in range(n + 1)])
        for _ in range(symbols):
            series = np.convolve(series, one)[: n + 1]
        below.append(series[n] * math.factorial(n) / symbols**n)
    below[0] = 0.0
    return sum(1 - p for p in below[:n]) / n
