"""Zheng et al., 2024, §3: A = S + B + f([S; B]), f a perceptron over all heads at one pair; alone, B is 0."""

import numpy as np

from tests.oracles.loop import attend as loop
from tests.oracles.loop import dot


def leaky(z):
    return np.where(z > 0, z, 0.01 * z)


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, p, i, j):
        s = np.array([dot(q, k, g, i, j) for g in range(len(heads))])
        both = np.concatenate([s, np.zeros_like(s)])
        return s[h] + float(leaky(both @ p["w1"] + p["b1"]) @ p["w2"]) + p["b2"]

    return loop(heads, q, k, v, seen, score)
