"""Dai et al., 2019, §3.3: four terms, (a) content, (b) content with position, (c) and (d) the two biases."""

import math

import numpy as np

from tests.oracles.loop import attend as loop


def sinusoid(distance, width, base):
    angles = [distance / base ** (2 * n / width) for n in range(width // 2)]
    return np.array([math.sin(a) for a in angles] + [math.cos(a) for a in angles])


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, p, i, j):
        r = sinusoid(float(pos[i] - pos[j]), p["w"].shape[0], scheme.base) @ p["w"]
        terms = q[i, h] @ k[j, h] + q[i, h] @ r + p["u"] @ k[j, h] + p["v"] @ r
        return float(terms) / math.sqrt(q.shape[2])

    return loop(heads, q, k, v, seen, score)
