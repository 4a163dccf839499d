"""Bianchessi et al. (2025), §3, and the authors' code: a penalty that is a power of the distance from a place."""

import math

from tests.oracles.alibi import slopes
from tests.oracles.loop import attend as loop
from tests.oracles.loop import dot


def attend(scheme, heads, q, k, v, x, pos, seen):
    m = slopes(len(heads))

    def score(h, p, i, j):
        place = math.exp(p["place"]) - math.exp(-p["place"]) if scheme.learned_place else 0.0
        away, steep = abs(float(pos[j] - pos[i]) - place), m[h] * math.exp(p["scale"])
        if scheme.form == "training":
            prior = steep * (away + 1e-5) ** p["shape"]
        else:
            prior = (steep * away + 1e-5) ** p["shape"]
        factor = p["s"] * math.log(sum(seen[i])) if scheme.ssmax else 1.0
        return (dot(q, k, h, i, j) - prior) * factor

    return loop(heads, q, k, v, seen, score)
