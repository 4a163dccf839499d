"""Nakanishi (2025), §2: the score times s log n, with n the number of keys in the row."""

import math

from tests.oracles import loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, p, i, j):
        return float(p["s"]) * math.log(sum(seen[i])) * loop.dot(q, k, h, i, j)

    return loop.attend(heads, q, k, v, seen, score)
