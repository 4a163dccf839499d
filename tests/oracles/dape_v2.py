"""Zheng et al., 2024, DAPE V2, §3: A = S + B + f([S; B]), f two convolutions along a row of keys; alone, B is 0.

A row is zero after the query's own key, on and on, and the second convolution reads what the first makes of that.
"""

import numpy as np

from tests.oracles.loop import attend as loop
from tests.oracles.loop import dot


def leaky(z):
    return np.where(z > 0, z, 0.01 * z)


def attend(scheme, heads, q, k, v, x, pos, seen):
    reach, count = scheme.kernel // 2, len(heads)

    def given(i, j):
        """[S; B] of all heads at a pair, zero where there is no key or none that the query sees."""
        here = 0 <= j < len(k) and seen[i, j]
        return np.array([dot(q, k, g, i, j) if here else 0.0 for g in range(count)] + [0.0] * count)

    def hidden(p, i, j):
        """The first convolution; nothing stands before the first key."""
        if j < 0:
            return np.zeros(scheme.hidden)
        return leaky(sum(given(i, j + n - reach) @ p["w1"][:, :, n] for n in range(scheme.kernel)) + p["b1"])

    def score(h, p, i, j):
        f = sum(hidden(p, i, j + n - reach) @ p["w2"][:, n] for n in range(scheme.kernel)) + p["b2"]
        return dot(q, k, h, i, j) + float(f)

    return loop(heads, q, k, v, seen, score)
