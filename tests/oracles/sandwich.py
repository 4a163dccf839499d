"""Chi et al., 2023, §4: p_m · p_n of sinusoidal embeddings, divided by h · 8 / H for head h of 1 … H."""

import math

from tests.oracles.loop import attend as loop
from tests.oracles.loop import dot


def embedding(position, scheme):
    turns = [position / 10000 ** (2 * n / scheme.dim) for n in range(scheme.first, scheme.first + scheme.dim // 2)]
    return [f(t) for t in turns for f in (math.sin, math.cos)]


def attend(scheme, heads, q, k, v, x, pos, seen):
    told = [embedding(float(p), scheme) for p in pos]

    def score(h, p, i, j):
        inner = sum(a * b for a, b in zip(told[i], told[j], strict=True))
        return dot(q, k, h, i, j) + inner / ((h + 1) * 8 / len(heads))

    return loop(heads, q, k, v, seen, score)
