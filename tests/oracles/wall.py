"""Pai et al. (2026): every feature of a product fades by its own gates between the key and the query."""

import math

from tests.oracles.loop import attend as loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, p, i, j):
        total = 0.0
        for n in range(q.shape[2]):
            gates = [1 / (1 + math.exp(-(float(p["w"][n] @ x[t]) + p["b"][n]))) for t in range(j + 1, i + 1)]
            total += q[i, h, n] * k[j, h, n] * math.prod(gates)
        return total / math.sqrt(q.shape[2])

    return loop(heads, q, k, v, seen, score)
