"""Hua et al. (2025), §4: a pair turns by sums of cosines and sines over the frequencies that are left."""

import math

from tests.oracles import loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, p, i, j):
        asked, told = turned(scheme, p, q[i, h], pos[i]), turned(scheme, p, k[j, h], pos[j])
        return sum((a * b.conjugate()).real for a, b in zip(asked, told, strict=True)) / math.sqrt(q.shape[-1])

    return loop.attend(heads, q, k, v, seen, score)


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
