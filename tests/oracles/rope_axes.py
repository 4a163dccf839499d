"""FLUX and its relatives: each axis of a position turns its own slice of the head, by complex numbers."""

import cmath
import math

from tests.oracles import loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    def score(h, p, i, j):
        asked, told = turned(scheme, q[i, h], pos[i]), turned(scheme, k[j, h], pos[j])
        return sum((a * b.conjugate()).real for a, b in zip(asked, told, strict=True)) / math.sqrt(q.shape[-1])

    return loop.attend(heads, q, k, v, seen, score)


def turned(scheme, x, place):
    out, first, pairs = [], 0, sum(scheme.widths) // 2
    for axis, width in enumerate(scheme.widths):
        base = scheme.base[axis] if isinstance(scheme.base, tuple) else scheme.base
        for m in range(width // 2):
            n = first // 2 + m  # of all pairs
            a, b = {
                "interleaved": (2 * n, 2 * n + 1),
                "half": (n, n + pairs),
                "half_per_axis": (first + m, first + m + width // 2),
            }[scheme.layout]
            out.append(complex(x[a], x[b]) * cmath.exp(1j * float(place[axis]) * base ** (-2 * m / width)))
        first += width
    return out + [complex(c, 0) for c in x[first:]]
