"""Softmax attention, one query and one key at a time, for oracles that only change the score."""

import math


def attention(score, v, seen):
    """`score(h, i, j)` for every pair that is seen; the weighted values, zero where nothing is."""
    out = 0.0 * v
    length, heads = v.shape[:2]
    for h in range(heads):
        for i in range(len(seen)):
            s = {j: score(h, i, j) for j in range(length) if seen[i, j]}
            total = sum(math.exp(one - max(s.values())) for one in s.values())
            for j, one in s.items():
                out[i, h] += math.exp(one - max(s.values())) / total * v[j, h]
    return out
