"""Lin et al., 2025, §3: the scores of a key fade by the forget gates of all tokens after it up to the query's."""

import math

from tests.oracles.loop import attend as loop
from tests.oracles.loop import dot


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, p, i, j):
        gates = [1 / (1 + math.exp(-(float(p["w"] @ x[n]) + p["b"]))) for n in range(j + 1, i + 1)]
        return dot(q, k, h, i, j) + math.log(math.prod(gates))

    return loop(heads, q, k, v, seen, score)
