"""Hallee and Gleghorn (2026): half of the features look back, half look ahead, and both at the token itself."""

import math

from tests.oracles.loop import attend as loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    d = q.shape[2]

    def score(h, p, i, j):
        back, ahead = float(q[i, h, : d // 2] @ k[j, h, : d // 2]), float(q[i, h, d // 2 :] @ k[j, h, d // 2 :])
        return (back * (pos[j] <= pos[i]) + ahead * (pos[j] >= pos[i])) / math.sqrt(d)

    return loop(heads, q, k, v, seen, score)
