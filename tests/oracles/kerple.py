"""Chi et al., 2022, §4 and the released code: kernels of |m - n| that are added, or multiply."""

import math

from tests.oracles.loop import attend as loop
from tests.oracles.loop import dot


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, p, i, j):
        d = abs(float(pos[i] - pos[j]))
        s = dot(q, k, h, i, j)
        if scheme.weight:
            s *= math.exp(-max(p["w1"], 0.01) * d ** min(max(p["w2"], 0.01), 2))
        if scheme.kernel == "none":
            return s
        r1 = max(p["r1"], 0.01)
        if scheme.kernel == "log":
            return s - r1 * math.log(1 + max(p["r2"], 0.01) * d)
        return s - r1 * d ** min(max(p["r2"], 0.01), 2)

    return loop(heads, q, k, v, seen, score)
