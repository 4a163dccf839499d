"""Tan et al. (2025), §2: walk back from the query; each key takes its share of what is left of the stick."""

import math

import numpy as np

from tests.oracles.loop import dot


def attend(scheme, heads, q, k, v, x, pos, seen):
    out = np.zeros((q.shape[0], q.shape[1], v.shape[2]))
    for h in range(q.shape[1]):
        for i in range(q.shape[0]):
            left = 1.0
            for j in range(i if scheme.current else i - 1, -1, -1):
                if seen[i, j]:
                    share = 1 / (1 + math.exp(-dot(q, k, h, i, j)))
                    out[i, h] += left * share * v[j, h]
                    left *= 1 - share
            if scheme.remainder:
                out[i, h] += left * v[i, h]
    return out
