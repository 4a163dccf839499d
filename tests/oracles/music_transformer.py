"""Huang et al., 2019, §3.4, eq. 3: softmax((Q Kᵀ + Q E_rᵀ) / √d) V; T2T's option adds vectors to V too."""

import math

import numpy as np

from tests.oracles.loop import attend as loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    def vector(table, i, j):
        r = int(pos[i] - pos[j])
        least = 1 - scheme.reach if scheme.bidirectional else 0
        return table[scheme.reach - 1 - r] if least <= r < scheme.reach else np.zeros(q.shape[2])

    def score(h, p, i, j):
        return float(q[i, h] @ (k[j, h] + vector(p["key"], i, j))) / math.sqrt(q.shape[2])

    def extra(h, p, i, j):
        return vector(p["value"], i, j) if scheme.values else 0.0

    return loop(heads, q, k, v, seen, score, extra)
