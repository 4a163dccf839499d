"""Vasylenko et al. (2025): scores times δ + β log(p + 2)^γ."""

import math

from tests.oracles.loop import attend as loop
from tests.oracles.loop import dot


def attend(scheme, heads, q, k, v, x, pos, seen):
    def factor(p, i):
        log = math.log(float(pos[i]) + 2)
        if scheme.kind == "log":
            return p["beta"] * log
        if scheme.kind == "learned":
            return scheme.delta + p["beta"] * log ** p["gamma"]
        beta = math.log(1 + math.exp(float(p["beta"] @ x[i])))
        return scheme.delta + beta * log ** (scheme.spread * math.tanh(float(p["gamma"] @ x[i])))

    return loop(heads, q, k, v, seen, lambda h, p, i, j: dot(q, k, h, i, j) * factor(p, i))
