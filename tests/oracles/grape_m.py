"""Zhang et al. (2025), contextual GRAPE-M as released: pairs turn back by a phase that sums gates of earlier tokens."""

import cmath
import math

from tests.oracles import loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    def phase(p, t):
        gates = [(float(p["w"] @ x[n]) + float(p["b"])) / scheme.omega_scale for n in range(t)]
        return sum(1 / (1 + math.exp(-g)) for g in gates)

    def turned(p, y, t):
        half, angle = len(y) // 2, phase(p, t)
        rates = [math.exp(float(f)) for f in p["log_frequency"]]
        return [complex(y[c], y[c + half]) * cmath.exp(-1j * angle * rates[c]) for c in range(half)]

    def score(h, p, i, j):
        pairs = zip(turned(p, q[i, h], i), turned(p, k[j, h], j), strict=True)
        return sum((a * b.conjugate()).real for a, b in pairs) / math.sqrt(q.shape[-1])

    return loop.attend(heads, q, k, v, seen, score)
