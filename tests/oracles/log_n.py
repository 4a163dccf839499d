"""Chiang and Cholak (2022), §5.3, as in Su (2021): the score times log n / log L, never less than once."""

import math

from tests.oracles.rows import attention


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, i, j):
        n = max(float(pos[i]), 0.0) + 1
        return max(1.0, math.log(n) / math.log(scheme.trained)) * (q[i, h] @ k[j, h]) / math.sqrt(q.shape[-1])

    return attention(score, v, seen)
