"""Allen-Zhu (2025): queries, keys and values through a causal filter for each feature, added to themselves."""

import numpy as np

from tests.oracles import loop
from tests.oracles.neighbours import before


def attend(scheme, heads, q, k, v, x, pos, seen):
    made = {name: filtered(scheme, heads[0][name], a) for name, a in (("query", q), ("key", k), ("value", v))}
    q, k = made["query"], made["key"]
    return loop.attend(heads, q, k, made["value"], seen, lambda h, p, i, j: loop.dot(q, k, h, i, j))


def filtered(scheme, weights, a):
    out = np.zeros_like(a)
    for i in range(len(a)):
        for steps in range(scheme.k):
            out[i] += weights[:, :, scheme.k - 1 - steps] * before(a, i, steps)
    if scheme.activation == "silu":
        out = out / (1 + np.exp(-out))
    return a + out if scheme.residual else out
