"""Press et al., 2022, §3: the slopes are a geometric sequence that starts at, and goes by, 2^(-8/n); or 1/h."""

import math

from tests.oracles.loop import attend as loop
from tests.oracles.loop import dot


def slopes(n, harmonic=False):
    if harmonic:
        return [1 / h for h in range(1, n + 1)]
    power = 1
    while 2 * power <= n:
        power *= 2
    first = [2.0 ** (-8.0 / power * (h + 1)) for h in range(power)]
    between = [2.0 ** (-8.0 / (2 * power) * (h + 1)) for h in range(2 * power)][::2]
    return first + between[: n - power]


def attend(scheme, heads, q, k, v, x, pos, seen):
    count = math.ceil(scheme.fraction * len(heads))
    harmonic = scheme.slopes == "harmonic"
    m, backward = slopes(count, harmonic), count
    if scheme.form == "split":
        backward = count - count // 2
        m = slopes(backward, harmonic) + (slopes(count // 2, harmonic) if count > 1 else [])

    def learned(h, a):
        if scheme.slopes == "logistic":
            return scheme.factor / (1 + math.exp(-a))
        return scheme.factor * m[h] * (math.exp(a) if scheme.slopes == "log" else a)

    def score(h, p, i, j):
        past, future = max(pos[i] - pos[j], 0), max(pos[j] - pos[i], 0)
        s = dot(q, k, h, i, j)
        if h >= count:
            return s
        if scheme.form == "sided":
            return s - learned(h, p["past"]) * past - learned(h, p["future"]) * future
        slope = learned(h, p["slope"]) if "slope" in p else scheme.factor * m[h]
        if scheme.form == "split" and (future if h < backward else past):
            return -math.inf
        return s - slope * (past + future) + (slope / 2 if scheme.form == "half" and past > 0 else 0)

    return loop(heads, q, k, v, seen, score)
