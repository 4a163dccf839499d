"""Raffel et al., 2020, §2.1: half of the buckets are exact, the rest grow as a logarithm up to the reach."""

import math
from fractions import Fraction

from tests.oracles.loop import attend as loop


def bucket(distance, buckets, reach):
    """exact + floor((n - exact) log(distance / exact) / log(reach / exact)), its floor found in whole numbers."""
    exact = buckets // 2
    if distance < exact:
        return distance
    steps, place = buckets - exact, 0
    while place + 1 < steps and Fraction(distance, exact) ** steps >= Fraction(reach, exact) ** (place + 1):
        place += 1
    return exact + place


WIDTH = 12
"""Of three heads of four features, of which a gate reads each its own."""


def gate(p, h, x):
    """Chen et al., 2022, §3.1: two sigmoids of sums of four, of a head's features of the input."""
    own = x[4 * h : 4 * h + 4] @ p["gate"] + p["gate_bias"]
    a, b = (1 / (1 + math.exp(-part.sum())) for part in (own[:4], own[4:]))
    return a * (p["gate_scale"] * b - 1) + 2


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, p, i, j):
        d = int(pos[i] - pos[j])
        if scheme.bidirectional:
            half = scheme.buckets // 2
            place = bucket(abs(d), half, scheme.reach) + (half if d < 0 else 0)
        else:
            place = bucket(max(d, 0), scheme.buckets, scheme.reach)
        if scheme.gate == "none":
            return q[i, h] @ k[j, h] + p["table"][place]
        return q[i, h] @ k[j, h] / 2 + gate(p, h, x[i]) * p["table"][place]

    return loop(heads, q, k, v, seen, score)
