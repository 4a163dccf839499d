"""Su (2023): RoPE of a distance that is cut, or bent, at the window; by complex numbers."""

import cmath
import math

from tests.oracles.loop import attend as loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    def distance(i, j):
        d = float(pos[i] - pos[j])
        side = -1 if d < 0 and scheme.bidirectional else 1
        return side * (
            side * d if side * d < scheme.window else scheme.window + (side * d - scheme.window) * scheme.leak
        )

    return turned(scheme, heads, q, k, v, seen, distance)


def turned(scheme, heads, q, k, v, seen, distance):
    """Attention whose products are turned by a distance of each pair."""
    d = q.shape[2]

    def pairs(a):
        if scheme.layout == "half":
            return [complex(a[n], a[n + d // 2]) for n in range(d // 2)]
        return [complex(a[2 * n], a[2 * n + 1]) for n in range(d // 2)]

    def score(h, p, i, j):
        s = 0.0
        for n, (a, b) in enumerate(zip(pairs(q[i, h]), pairs(k[j, h]), strict=True)):
            s += (a * b.conjugate() * cmath.exp(1j * distance(i, j) * scheme.base ** (-2 * n / d))).real
        return s / math.sqrt(d)

    return loop(heads, q, k, v, seen, score)
