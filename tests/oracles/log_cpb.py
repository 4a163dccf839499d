"""Liu et al., 2022, §3.3: B(Δx, Δy) = G(Δx, Δy), G a perceptron of signed logarithms, and 16 σ of it."""

import math

import numpy as np

from tests.oracles.loop import attend as loop
from tests.oracles.loop import dot


def attend(scheme, heads, q, k, v, x, pos, seen):
    reach = np.broadcast_to(scheme.reach, scheme.axes)
    pos = np.reshape(pos, (len(pos), scheme.axes))

    def feature(distance, reach):
        u = distance / reach
        if scheme.spacing == "linear":
            return u
        return math.copysign(math.log(1 + 8 * abs(u), 8), u)

    def active(z):
        return max(z, 0.0) if scheme.activation == "relu" else z / (1 + math.exp(-z))

    def score(h, p, i, j):
        t = [feature(float(a - b), r) for a, b, r in zip(pos[i], pos[j], reach, strict=True)]
        for layer in range(1, scheme.depth + 1):
            t = [active(float(np.dot(t, w)) + b) for w, b in zip(p[f"w{layer}"].T, p[f"b{layer}"], strict=True)]
        f = float(np.dot(t, p["w"]))
        return dot(q, k, h, i, j) + (16 / (1 + math.exp(-f)) if scheme.bounded else f + p["b"])

    return loop(heads, q, k, v, seen, score)
