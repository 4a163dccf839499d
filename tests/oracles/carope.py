"""Veisi et al. (2025), §2, by complex numbers: φ_c(m) = Σ_{t ≤ m} f(x_t)^c with f = 1 / (softplus(x W) + 1)."""

import cmath
import math

from tests.oracles import loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    d = q.shape[-1]

    def frequency(p, token):
        return 1 / (1 + math.log(1 + math.exp(float(p["w"] @ token + p["b"]))))

    def score(h, p, i, j):
        total = 0.0
        for c in range(d // 2):
            phase = sum(frequency(p, x[t]) ** (c + scheme.first) for t in range(j + 1, i + 1))
            asked, told = complex(q[i, h, c], q[i, h, c + d // 2]), complex(k[j, h, c], k[j, h, c + d // 2])
            total += (asked * cmath.exp(1j * phase) * told.conjugate()).real
        return total / math.sqrt(d)

    return loop.attend(heads, q, k, v, seen, score)
