"""Attention as its equation is written: a loop over heads, queries and keys, in float64, slowly."""

import math

import numpy as np


def attend(heads, q, k, v, seen, score, extra=None):
    """Softmax of `score(h, p, i, j)` over the keys that query i sees, times `v`; `extra(h, p, i, j)` joins v_j."""
    out = np.zeros((q.shape[0], q.shape[1], v.shape[2]))
    for h, p in enumerate(heads):
        for i in range(q.shape[0]):
            keys = [j for j in range(k.shape[0]) if seen[i, j]]
            if not keys:
                continue
            s = [score(h, p, i, j) for j in keys]
            top = max(s)
            e = [math.exp(x - top) for x in s]
            for j, weight in zip(keys, e, strict=True):
                added = extra(h, p, i, j) if extra else 0.0
                out[i, h] += weight / sum(e) * (v[j, h] + added)
    return out


def dot(q, k, h, i, j):
    """q·k / √d."""
    return float(q[i, h] @ k[j, h]) / math.sqrt(q.shape[2])
