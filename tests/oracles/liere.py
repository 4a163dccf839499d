"""Ostmeier et al. (2024), §4: each block of a head times the exponential of a sum of generators, by its series."""

import math

import numpy as np

from tests.oracles import loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, p, i, j):
        return float(turned(scheme, p, q[i, h], pos[i]) @ turned(scheme, p, k[j, h], pos[j])) / math.sqrt(q.shape[-1])

    return loop.attend(heads, q, k, v, seen, score)


def turned(scheme, head, x, place):
    place, size, out = np.atleast_1d(place), scheme.size, []
    for block in range(len(x) // size):
        total = np.zeros((size, size))
        for a in range(scheme.axes):
            numbers = iter(head["generator"][a, block])
            for row in range(size):
                for column in range(row + 1, size):
                    entry = float(next(numbers)) * float(place[a]) / scheme.extent
                    total[row, column] += entry
                    total[column, row] -= entry
        out.append(exponential(total) @ x[block * size : (block + 1) * size])
    return np.concatenate(out)


def exponential(a):
    """The series of exp(a / 2^10), squared ten times."""
    small, term, total = a / 2.0**10, np.eye(len(a)), np.eye(len(a))
    for n in range(1, 25):
        term = term @ small / n
        total = total + term
    for _ in range(10):
        total = total @ total
    return total
