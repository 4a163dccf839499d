"""Press et al., 2022, §3: the slopes are a geometric sequence that starts at, and goes by, 2^(-8/n)."""

from tests.oracles.loop import attend as loop
from tests.oracles.loop import dot


def slopes(n):
    power = 1
    while 2 * power <= n:
        power *= 2
    first = [2.0 ** (-8.0 / power * (h + 1)) for h in range(power)]
    between = [2.0 ** (-8.0 / (2 * power) * (h + 1)) for h in range(2 * power)][::2]
    return first + between[: n - power]


def attend(scheme, heads, q, k, v, x, pos, seen):
    m = slopes(len(heads))

    def score(h, p, i, j):
        past, future = max(pos[i] - pos[j], 0), max(pos[j] - pos[i], 0)
        s = dot(q, k, h, i, j)
        if scheme.form == "sided":
            return s - m[h] * (p["past"] * past + p["future"] * future)
        return s - m[h] * (past + future) + (m[h] / 2 if scheme.form == "half" and past > 0 else 0)

    return loop(heads, q, k, v, seen, score)
