"""Anson et al. (2025): scores times a, plus 1 - a², with a² = 1 + 2 log(1 + Δ / τ)."""

import math

from tests.oracles.loop import attend as loop
from tests.oracles.loop import dot


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, p, i, j):
        square = 1 + 2 * math.log(1 + float(pos[i] - pos[j]) / scheme.tau)
        return math.sqrt(square) * dot(q, k, h, i, j) + 1 - square

    return loop(heads, q, k, v, seen, score)
