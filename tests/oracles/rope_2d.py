"""Heo et al. (2024), §3.2 and §3.3: a pair of features is a complex number, turned by x and y together."""

import cmath

from tests.oracles.turned import of_complex


def attend(scheme, heads, q, k, v, x, pos, seen):
    return of_complex(lambda p, *token: turned(scheme, p, *token), heads, q, k, v, pos, seen)


def turned(scheme, head, x, place):
    d = len(x)
    out = []
    for pair in range(d // 2):
        a, b = (pair, pair + d // 2) if scheme.layout == "half" else (2 * pair, 2 * pair + 1)
        if scheme.frequencies == "mixed":
            angle = place[0] * head["frequency"][0, pair] + place[1] * head["frequency"][1, pair]
        elif pair < d // 4:
            angle = place[0] * scheme.base ** (-4 * pair / d)
        else:
            angle = place[1] * scheme.base ** (-4 * (pair - d // 4) / d)
        out.append(complex(x[a], x[b]) * cmath.exp(1j * float(angle)))
    return out
