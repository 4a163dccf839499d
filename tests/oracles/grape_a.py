"""Zhang et al. (2025), GRAPE-A: (p_j - p_i) ω_h m_h (softplus(u · k_j / √d) + softplus(v · q_i / √d))."""

import math

import numpy as np

from tests.oracles import loop
from tests.oracles.alibi import slopes


def attend(scheme, heads, q, k, v, x, pos, seen):
    m, d = slopes(len(heads)), q.shape[-1]

    def gate(direction, features):
        length = np.sqrt(direction @ direction) if scheme.unit else 1.0
        return softplus(float(direction @ features) / float(length) / math.sqrt(d))

    def score(h, p, i, j):
        gates = 0.0
        if scheme.gate in ("key", "both"):
            gates += gate(p["u"], k[j, h])
        if scheme.gate in ("query", "both"):
            gates += gate(p["v"], q[i, h])
        distance = max(int(pos[i]) - int(pos[j]), 0)
        return loop.dot(q, k, h, i, j) - distance * softplus(float(p["omega"])) * m[h] * gates

    return loop.attend(heads, q, k, v, seen, score)


def softplus(a):
    return math.log(1 + math.exp(a))
