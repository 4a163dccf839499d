"""Shaw et al., 2018, §3: e_ij = x_i W^Q (x_j W^K + a^K_ij)ᵀ / √d, z_i = Σ_j α_ij (x_j W^V + a^V_ij)."""

import math

from tests.oracles.loop import attend as loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    def row(i, j):
        return int(max(-scheme.reach, min(scheme.reach, pos[j] - pos[i]))) + scheme.reach

    def score(h, p, i, j):
        return float(q[i, h] @ (k[j, h] + p["key"][row(i, j)])) / math.sqrt(q.shape[2])

    def extra(h, p, i, j):
        return p["value"][row(i, j)] if scheme.values else 0.0

    return loop(heads, q, k, v, seen, score, extra)
