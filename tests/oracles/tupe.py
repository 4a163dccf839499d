"""Ke et al., 2021, §3.1 and §3.2, as released: all pairs of positions, and [CLS] set apart by two numbers."""

import math

from tests.oracles.loop import attend as loop
from tests.oracles.t5 import bucket


def term(p, a, b):
    """(n(a) U + b_U) · (n(b) V + b_V) of two rows of the table."""

    def normal(row):
        return (row - row.mean()) / math.sqrt(row.var() + 1e-5) * p["gain"] + p["offset"]

    left, right = (normal(p["table"][row]) @ p[side] + p[f"{side}_bias"] for row, side in ((a, "query"), (b, "key")))
    return float(left @ right)


def place(scheme, i, j):
    """The place of a pair of positions in the table of biases."""
    half = scheme.buckets // 2
    if scheme.reset and i == 0:
        return half
    if scheme.reset and j == 0:
        return scheme.buckets
    return bucket(abs(i - j), half, scheme.reach) + (half if i < j else 0)


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, p, i, j):
        a, b = int(pos[i]), int(pos[j])
        if scheme.reset:
            rows = (0, 0) if a == 0 else (1, 1) if b == 0 else (a + 1, b + 1)
        else:
            rows = a, b
        s = (float(q[i, h] @ k[j, h]) + term(p, *rows)) / math.sqrt(2 * q.shape[2])
        return s + p["bias"][place(scheme, a, b)] if scheme.buckets else s

    return loop(heads, q, k, v, seen, score)
