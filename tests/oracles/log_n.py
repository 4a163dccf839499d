"""Chiang and Cholak (2022), §5.3, as in Su (2021): the score times log n / log L, never less than once."""

import math

from tests.oracles import loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, p, i, j):
        if scheme.offset > 1:  # Chen et al. (2026)
            return math.log(float(pos[i]) + scheme.offset) / math.log(scheme.offset) * loop.dot(q, k, h, i, j)
        n = max(float(pos[i]), 0.0) + 1
        return max(1.0, math.log(n) / math.log(scheme.trained)) * loop.dot(q, k, h, i, j)

    return loop.attend(heads, q, k, v, seen, score)
