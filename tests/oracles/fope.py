"""Hua et al. (2025), §4: a pair turns by sums of cosines and sines over the frequencies that are left."""

import math

from tests.oracles.turned import of_complex


def attend(scheme, heads, q, k, v, x, pos, seen):
    return of_complex(lambda p, *token: turned(scheme, p, *token), heads, q, k, v, pos, seen)


def turned(scheme, head, x, p):
    """The features of one token as complex numbers; what multiplies them is in general no turn."""
    d, p = len(x), float(p)
    every = [scheme.base ** (-2 * c / d) for c in range(d // 2)]
    high = [w for w in every if w >= 2 * math.pi / scheme.length]
    if scheme.zeros == "kept":
        frequencies, pairs = [w if w in high else 0.0 for w in every], d // 2
    else:
        frequencies, pairs = high, min(len(high), d // 4)
    out = []
    for c in range(d // 2):
        if c < pairs:
            cos, sin = (head[name] for name in (("cos", "sin") if scheme.separate else ("both", "both")))
            real = sum(float(cos[n, c]) * math.cos(p * w) for n, w in enumerate(frequencies))
            imaginary = sum(float(sin[n, c]) * math.sin(p * w) for n, w in enumerate(frequencies))
        else:
            real, imaginary = 1.0, 1.0 if scheme.form == "as_released" else 0.0
        out.append(complex(x[c], x[c + d // 2]) * complex(real, imaginary))
    return out
