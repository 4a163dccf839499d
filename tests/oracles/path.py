"""Yang et al. (2025), §2: the key is multiplied by H = I - β w wᵀ of each token after it, up to the query's own."""

import math

import numpy as np

from tests.oracles import loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    d = q.shape[-1]

    def direction(p, t):
        near = [p["up"] @ (p["down"] @ x[t - n]) * p["conv"][:, -1 - n] for n in range(scheme.kernel) if n <= t]
        w = sum(near)
        if scheme.activation == "silu":
            w = w / (1 + np.exp(-w))
        return w / math.sqrt(w @ w + 1e-6)

    def score(h, p, i, j):
        key, gates = k[j, h], 0.0
        for t in range(j + 1, i + 1):
            w, beta = direction(p, t), 2 / (1 + math.exp(-float(p["beta"] @ x[t] + p["beta_bias"])))
            key = (np.eye(d) - beta * np.outer(w, w)) @ key
            if scheme.forget != "none":
                gates -= math.log(1 + math.exp(-float(p["gate"] @ x[t] + p["gate_bias"])))
        return float(q[i, h] @ key) / math.sqrt(d) + gates / (math.sqrt(d) if scheme.forget == "scaled" else 1)

    return loop.attend(heads, q, k, v, seen, score)
