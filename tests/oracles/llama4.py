"""Llama 4's released attention: the query grows by a logarithm of its position, in steps of `floor`."""

import math

from tests.oracles import loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, p, i, j):
        steps = max(math.floor((float(pos[i]) + scheme.offset) / scheme.floor), 0)
        return (1 + scheme.strength * math.log(1 + steps)) * loop.dot(q, k, h, i, j)

    return loop.attend(heads, q, k, v, seen, score)
