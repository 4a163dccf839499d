"""d'Ascoli et al., 2021, §3, eq. 6 and 7: (1 - σ(λ)) softmax(Q Kᵀ) + σ(λ) softmax(v_posᵀ r_ij), r = (δ, |δ|²)."""

import math

import numpy as np

from tests.oracles.loop import dot


def softmax(scores):
    top = max(scores)
    e = [math.exp(s - top) for s in scores]
    return [a / sum(e) for a in e]


def attend(scheme, heads, q, k, v, x, pos, seen):
    pos, out = np.reshape(pos, (len(pos), scheme.axes)).astype(float), np.zeros((len(q), len(heads), v.shape[2]))
    for h, p in enumerate(heads):
        gate = 1 / (1 + math.exp(-p["gate"]))
        for i in range(len(q)):
            keys = [j for j in range(len(k)) if seen[i, j]]
            features = [[*(pos[j] - pos[i]), sum((pos[j] - pos[i]) ** 2)] for j in keys]
            content = softmax([dot(q, k, h, i, j) for j in keys])
            place = softmax([float(np.dot(p["w"][h], r)) + p["b"][h] for r in features])
            for j, a, b in zip(keys, content, place, strict=True):
                out[i, h] += ((1 - gate) * a + gate * b) * v[j, h]
    return out
