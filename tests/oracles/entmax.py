"""Peters et al. (2019): the threshold by bisection, row by row."""

import numpy as np

from tests.oracles.loop import dot


def attend(scheme, heads, q, k, v, x, pos, seen):
    out = np.zeros((q.shape[0], q.shape[1], v.shape[2]))
    for h in range(len(heads)):
        for i in range(len(q)):
            keys = [j for j in range(len(k)) if seen[i, j]]
            a = weights(scheme.alpha, [dot(q, k, h, i, j) for j in keys])
            out[i, h] = sum(w * v[j, h] for w, j in zip(a, keys, strict=True))
    return out


def weights(alpha, s):
    raised = lambda tau: [max((alpha - 1) * a - tau, 0) ** (1 / (alpha - 1)) for a in s]  # noqa: E731
    low, high = (alpha - 1) * max(s) - 1, (alpha - 1) * max(s)
    for _ in range(200):
        tau = (low + high) / 2
        low, high = (tau, high) if sum(raised(tau)) > 1 else (low, tau)
    total = raised(low)
    return [a / sum(total) for a in total]
