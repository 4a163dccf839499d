"""Golovneva et al. (2024), §4: gates are summed from the key to the query, and the sum is a position between two."""

import math

from tests.oracles.loop import attend as loop
from tests.oracles.loop import dot


def attend(scheme, heads, q, k, v, x, pos, seen):
    root = math.sqrt(q.shape[2])

    def gate(h, p, i, j):
        told = dot(q, k, h, i, j)
        if scheme.gates == "own":
            told = float(q[i, h] @ (x[j] @ p["gate"] + p["gate_bias"])) / root
        return 1 / (1 + math.exp(-told))

    def score(h, p, i, j):
        place = min(sum(gate(h, p, i, n) for n in range(j, i + 1) if seen[i, n]), scheme.npos - 1)
        low, high = math.floor(place), math.ceil(place)
        vector = (place - low) * p["embedding"][high] + (1 - (place - low)) * p["embedding"][low]
        return dot(q, k, h, i, j) + float(q[i, h] @ vector) / (root if scheme.scaled else 1)

    return loop(heads, q, k, v, seen, score)
