"""Li et al., 2024, §3: f(ψ(i - j) / ψ(max(L, i))), ψ(x) = log(1 + |c x|), f a perceptron."""

import math

from tests.oracles.loop import attend as loop
from tests.oracles.loop import dot


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, p, i, j):
        far = max(pos[i], pos[j]) if scheme.bidirectional else pos[i]
        far = max(far, abs(p["m"] * scheme.threshold))
        share = math.log(abs(p["c"] * (pos[i] - pos[j])) + 1) / (math.log(abs(p["c"] * far) + 1) + scheme.eps)
        hidden = [max(0.0, w * share + b) for w, b in zip(p["w1"], p["b1"], strict=True)]
        return dot(q, k, h, i, j) + sum(w * a for w, a in zip(p["w2"], hidden, strict=True)) + p["b2"]

    return loop(heads, q, k, v, seen, score)
