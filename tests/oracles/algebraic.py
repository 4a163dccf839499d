"""Kogkalidis et al. (2024), §3: products of orthogonal steps, one matrix after another."""

import math

import numpy as np

from tests.oracles import loop
from tests.oracles.liere import exponential


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, p, i, j):
        s = float(mapped(scheme, p, q[i, h], pos[i]) @ mapped(scheme, p, k[j, h], pos[j])) / math.sqrt(q.shape[-1])
        return s * scheme.decay ** steps(scheme, pos[i], pos[j])

    return loop.attend(heads, q, k, v, seen, score)


def mapped(scheme, head, x, place):
    d = len(x)
    if scheme.structure == "grid":
        halves = x[: d // 2], x[d // 2 :]
        maps = [power(step(head, a, d // 2), int(place[a])) for a in range(2)]
        return np.concatenate([m @ half for m, half in zip(maps, halves, strict=True)])
    if scheme.structure == "sequence":
        return power(step(head, 0, d), int(place)) @ x
    product = np.eye(d)
    for child in path(scheme, place):
        product = product @ step(head, child, d).T
    return product @ x


def step(head, which, size):
    """exp(S), where S has these numbers above its diagonal."""
    numbers, s = iter(head["step"][which]), np.zeros((size, size))
    for row in range(size):
        for column in range(row + 1, size):
            s[row, column] = float(next(numbers))
    return exponential(s - s.T)


def power(w, n):
    product = np.eye(len(w))
    for _ in range(n):
        product = product @ w
    return product


def path(scheme, node):
    """The children from the root down to a node."""
    children, node = [], int(node)
    while node:
        children.insert(0, (node - 1) % scheme.branching)
        node = (node - 1) // scheme.branching
    return children


def steps(scheme, i, j):
    if scheme.structure != "tree":
        return float(np.abs(np.atleast_1d(i) - np.atleast_1d(j)).sum())
    a, b = path(scheme, i), path(scheme, j)
    common = 0
    while common < min(len(a), len(b)) and a[common] == b[common]:
        common += 1
    return len(a) + len(b) - 2 * common
