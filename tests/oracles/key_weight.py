"""Bonev et al., 2025, §3: each key counts as often as its weight says, which is its position here."""

import math

from tests.oracles.loop import attend as loop
from tests.oracles.loop import dot


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, p, i, j):
        w = float(pos[j])
        return dot(q, k, h, i, j) + (w if scheme.form == "plain" else math.log(w) if w else -1e9)

    return loop(heads, q, k, v, seen, score)
