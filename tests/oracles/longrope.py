"""Ding et al. (2024), §3.2, and Phi-3's switch: each frequency divided by a number of its own."""

import math

from tests.oracles import turned


def attend(scheme, heads, q, k, v, x, pos, seen):
    plain, length, L0 = turned.plain(scheme, turned.width(scheme, q)), float(pos.max()) + 1, scheme.original
    divisors = scheme.long
    if scheme.switch == "length" and length <= L0:
        divisors = scheme.short
    if scheme.switch == "gradual":
        way = max(length / L0 - 1, 0) / (scheme.factor - 1)
        divisors = [1 + (number - 1) * way for number in scheme.long]
    rates = [w / number for w, number in zip(plain, divisors, strict=True)]
    size = scheme.magnitude
    if size == "su":
        size = math.sqrt(1 + math.log(scheme.factor) / math.log(L0))
    if size == "yarn":
        size = 0.1 * math.log(scheme.factor) + 1
    first = lambda p: p < scheme.start  # noqa: E731
    return turned.attend(
        scheme, heads, q, k, v, pos, seen, lambda p: plain if first(p) else rates, lambda p: 1 if first(p) else size
    )
