"""Su (2025): o_i = Σ_j a_ij R(p_j - p_i) v_j, each value turned by its own distance."""

import cmath
import math

import numpy as np

from tests.oracles import loop
from tests.oracles import turned as parts


def attend(scheme, heads, q, k, v, x, pos, seen):
    out = np.zeros((q.shape[0], q.shape[1], v.shape[2]))

    def score(h, p, i, j):
        key = turned(scheme, k[j, h], pos[j] - pos[i]) if scheme.queries_and_keys else k[j, h]
        return float(q[i, h] @ key) / math.sqrt(q.shape[-1])

    for i in range(len(q)):
        near = np.stack([[turned(scheme, one, pos[j] - pos[i]) for one in v[j]] for j in range(len(v))])
        out[i] = loop.attend(heads, q, k, near, seen, score)[i]
    return out


def turned(scheme, x, distance):
    d, out = round(scheme.fraction * len(x)), np.array(x, float)
    rates = parts.plain(scheme, d)
    if scheme.factor > 1:  # as Peng et al. (2024)
        rates = parts.yarn(rates, scheme.factor, 32, 1, d, scheme.base, scheme.original, True, 1)
    for pair, rate in enumerate(rates):
        a, b = parts.pair(scheme, pair, d, len(x))
        z = complex(x[a], x[b]) * cmath.exp(1j * float(distance) * rate)
        out[a], out[b] = z.real, z.imag
    return out
