"""Llama 4's released attention: the query grows by a logarithm of its position, in steps of `floor`."""

import math

from tests.oracles.rows import attention


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, i, j):
        steps = max(math.floor((float(pos[i]) + 1) / scheme.floor), 0)
        return (1 + scheme.strength * math.log(1 + steps)) * (q[i, h] @ k[j, h]) / math.sqrt(q.shape[-1])

    return attention(score, v, seen)
