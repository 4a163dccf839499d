"""Wang et al. (2025), eq. 12: q_A·k_A / √(θd) · cos(2π |m - n|^α q_P·k_P / √((1 - θ) d))."""

import math

from tests.oracles.loop import attend as loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    d = q.shape[2]
    n = round(scheme.share * d)

    def score(h, p, i, j):
        amplitude = float(q[i, h, :n] @ k[j, h, :n]) / math.sqrt(n)
        phase = float(q[i, h, n:] @ k[j, h, n:]) / math.sqrt(d - n)
        return amplitude * math.cos(2 * math.pi * abs(float(pos[i] - pos[j])) ** scheme.alpha * phase)

    return loop(heads, q, k, v, seen, score)
