"""Inkling's released attention: τ (q · k / d + r · P[distance]), where the last term is 0 beyond the profiles."""

import math

from tests.oracles import loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, p, i, j):
        distance = int(pos[i]) - int(pos[j])
        expected = float((p["w"] @ x[i]) @ p["profiles"][:, distance]) if distance < scheme.extent else 0.0
        tau = 1 + scheme.strength * math.log(max((int(pos[i]) + 1) / scheme.floor, 1))
        return tau * (float(q[i, h] @ k[j, h]) / q.shape[2] + expected)

    return loop.attend(heads, q, k, v, seen, score)
