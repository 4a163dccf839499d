"""Raffel et al., 2020, §2.1: half of the buckets are exact, the rest grow as a logarithm up to the reach."""

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


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, p, i, j):
        d = int(pos[i] - pos[j])
        if scheme.bidirectional:
            half = scheme.buckets // 2
            place = bucket(abs(d), half, scheme.reach) + (half if d < 0 else 0)
        else:
            place = bucket(max(d, 0), scheme.buckets, scheme.reach)
        return q[i, h] @ k[j, h] + p["table"][place]

    return loop(heads, q, k, v, seen, score)
