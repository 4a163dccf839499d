"""FLUX and its relatives: each axis of a position turns its own slice of the head, by complex numbers."""

import cmath

from tests.oracles.turned import of_complex


def attend(scheme, heads, q, k, v, x, pos, seen):
    return of_complex(lambda _, *token: turned(scheme, *token), heads, q, k, v, pos, seen)


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
