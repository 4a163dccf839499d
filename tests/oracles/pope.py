"""Gopalakrishnan et al. (2025), §3: lengths times the cosine of the distance's angle, feature by feature."""

import math

from tests.oracles import loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    d = q.shape[-1]

    def score(h, p, i, j):
        total = 0.0
        for c in range(d):
            delta = min(max(float(p["delta"][c]), -2 * math.pi), 0.0)
            angle = (float(pos[j]) - float(pos[i])) * scheme.base ** (-c / d) + delta
            total += math.log1p(math.exp(q[i, h, c])) * math.log1p(math.exp(k[j, h, c])) * math.cos(angle)
        return total / math.sqrt(d)

    return loop.attend(heads, q, k, v, seen, score)
