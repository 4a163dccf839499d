"""Li et al. (2025), by complex numbers: a rotation at the position W (silu(G x) ∘ C x) of each token."""

import cmath
import math

import numpy as np

from tests.oracles import loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    d = q.shape[-1]

    def position(p, token):
        if scheme.mode == "swiglu":
            gate = np.array([a / (1 + math.exp(-a)) for a in p["gate"] @ token])
            token = gate * (p["content"] @ token)
        return float(p["w"] @ token)

    def score(h, p, i, j):
        apart, total = position(p, x[i]) - position(p, x[j]), 0.0
        for c in range(d // 2):
            asked, told = complex(q[i, h, c], q[i, h, c + d // 2]), complex(k[j, h, c], k[j, h, c + d // 2])
            total += (asked * cmath.exp(1j * apart * scheme.base ** (-2 * c / d)) * told.conjugate()).real
        return total / math.sqrt(d)

    return loop.attend(heads, q, k, v, seen, score)
