"""Movahedi et al. (2025), by complex numbers: each token turns by phases of its own, which add up."""

import cmath
import math

import numpy as np

from tests.oracles import loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    d = q.shape[-1]
    sums = [np.cumsum([phases(scheme, p, x, h, len(heads), t) for t in range(len(x))], 0) for h, p in enumerate(heads)]

    def score(h, p, i, j):
        total = 0.0
        for c in range(d // 2):
            turn = cmath.exp(1j * temperature(scheme, p, c, d) * (sums[h][j][c] - sums[h][i][c]))
            asked, told = complex(q[i, h, c], q[i, h, c + d // 2]), complex(k[j, h, c], k[j, h, c + d // 2])
            total += (asked.conjugate() * turn * told).real
        return total / math.sqrt(d)

    return loop.attend(heads, q, k, v, seen, score)


def temperature(scheme, p, c, d):
    if scheme.frequencies == "learned":
        return float(p["temperature"][c])
    if scheme.spectrum == "rope":
        return scheme.base ** (-2 * c / d)
    angles = [scheme.base * math.pi * n / (d // 2 - 1) for n in range(d // 2)]
    roots = [math.sqrt((1 - math.cos(a)) / (1 + math.cos(a))) for a in angles]
    return roots[c] / max(roots)


def phases(scheme, p, x, h, heads, t):
    """How far token t turns each pair of head h, before the temperatures."""
    if scheme.kernel:
        out = sum(p["conv"][:, -1 - n] * projected(scheme, p, x, h, heads, t - n) for n in range(scheme.kernel))
    else:
        out = projected(scheme, p, x, h, heads, t) - projected(scheme, p, x, h, heads, t - 1)
    if scheme.activation == "silu":
        out = np.array([a / (1 + math.exp(-a)) for a in out])
    if scheme.bias:
        out = out + np.exp(p["bias"])
    if scheme.gate:
        logit = float(p["gate"] @ np.concatenate(parts(x[t], heads)) + p["gate_bias"])
        out = out / (1 + math.exp(-logit))
    return out


def parts(token, heads):
    """The part of each head, at length 1."""
    return [part / math.sqrt(sum(a * a for a in part) + 1e-6) for part in np.split(token, heads)]


def projected(scheme, p, x, h, heads, t):
    if t < 0:
        return np.zeros(len(p["up"] if scheme.rank else p["w"]))
    if scheme.rank:
        return p["up"] @ (p["down"] @ np.concatenate(parts(x[t], heads)))
    return np.array([p["length"] * float(row @ parts(x[t], heads)[h]) / math.sqrt(row @ row) for row in p["w"]])
