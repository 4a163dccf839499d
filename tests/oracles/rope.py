"""Su et al. (2021), eq. 34, by complex numbers: a pair of features is a + bi, turned by e^(ipω)."""

import cmath
import math

from tests.oracles import turned as parts
from tests.oracles.turned import of_complex


def attend(scheme, heads, q, k, v, x, pos, seen):
    return of_complex(lambda p, *token: turned(scheme, p, *token), heads, q, k, v, pos, seen)


def turned(scheme, head, x, p):
    """The features of one token as complex numbers, those outside the turned part with nothing imaginary."""
    width = round(scheme.fraction * len(x))
    if scheme.frequencies == "learned":
        rates = [float(w) for w in head["frequency"]]
    else:
        kept = math.floor(scheme.p * width / 2 + 1e-9)
        rates = [scheme.base ** (-2 * n / width) if n < kept else 0.0 for n in range(width // 2)]
        rates = parts.tapered(rates, scheme.taper)
    out = []
    for n in range(width // 2):
        a, b = parts.pair(scheme, n, width, len(x))
        out.append(complex(x[a], x[b]) * cmath.exp(1j * float(p) * rates[n]))
    return out + [complex(c, 0) for c in parts.rest(scheme, x, width)]
