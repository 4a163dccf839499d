"""What the oracles of scaled rotary embeddings share: scores of pairs as complex numbers, with a frequency for each."""

import math

from tests.oracles import loop


def attend(scheme, heads, q, k, v, pos, seen, rates, size=lambda p: 1.0):
    """Softmax of turned scores: `rates(p)` are the frequencies at position p, `size(p)` the factor there."""
    d = q.shape[-1]

    def token(_, x, p):
        p = float(p)
        width, w = round(scheme.fraction * d), rates(p)
        out = []
        for n in range(width // 2):
            a, b = pair(scheme, n, width, len(x))
            turn = complex(math.cos(p * w[n]), math.sin(p * w[n]))
            out.append(complex(x[a], x[b]) * turn * size(p))
        return out + [complex(c, 0) for c in rest(scheme, x, width)]

    return of_complex(token, heads, q, k, v, pos, seen)


def of_complex(turn, heads, q, k, v, pos, seen):
    """Softmax of the real products of what `turn(p, x, place)` makes of a query and a key: complex numbers."""

    def score(h, p, i, j):
        asked, told = turn(p, q[i, h], pos[i]), turn(p, k[j, h], pos[j])
        return sum((a * b.conjugate()).real for a, b in zip(asked, told, strict=True)) / math.sqrt(q.shape[-1])

    return loop.attend(heads, q, k, v, seen, score)


def pair(scheme, n, width, d):
    """The features of pair n, of the first or the last `width` features of a head."""
    a, b = (n, n + width // 2) if scheme.layout == "half" else (2 * n, 2 * n + 1)
    start = d - width if getattr(scheme, "at", "start") == "end" else 0
    return start + a, start + b


def rest(scheme, x, width):
    """The features that are not turned."""
    return x[: len(x) - width] if getattr(scheme, "at", "start") == "end" else x[width:]


def tapered(rates, share):
    """Li et al. (2026): the lowest of the frequencies times (1 + cos θ) / 2, θ from 0 to π."""
    count, first = round(share * len(rates)), len(rates) - round(share * len(rates))
    steps = max(count - 1, 1)
    fade = lambda n: 1.0 if n < first else (1 + math.cos(math.pi * (n - first) / steps)) / 2  # noqa: E731
    return [w * fade(n) for n, w in enumerate(rates)]


def width(scheme, q):
    """How many features of a head are turned."""
    return round(scheme.fraction * q.shape[-1])


def plain(scheme, d):
    """Su et al. (2021): base^(-2i / d)."""
    return [scheme.base ** (-2 * i / d) for i in range(d // 2)]


def index(turns, d, base, length):
    """Peng et al. (2024): the pair that turns so often within a length, d log(L / 2πr) / (2 log base)."""
    return d * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base))


def ramp(i, fast, slow, d, base, length, truncate=True):
    """0 before the pair of `fast` turns, 1 after that of `slow` turns, in a straight line between."""
    low, high = index(fast, d, base, length), index(slow, d, base, length)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, d - 1)
    if low == high:
        high += 0.001
    return min(max((i - low) / (high - low), 0), 1)


def yarn(w, s, fast, slow, d, base, length, truncate=True, kept=1.0):
    """Peng et al. (2024), §3.2: each frequency between itself and itself divided by s."""
    gamma = [(1 - ramp(i, fast, slow, d, base, length, truncate)) * kept for i in range(d // 2)]
    return [(1 - g) * f / s + g * f for f, g in zip(w, gamma, strict=True)]


def ntk(w, s, d):
    """bloc97 (2023): the base times s^(d / (d - 2))."""
    return [f * s ** (-2 * i / (d - 2)) for i, f in enumerate(w)]


def by_parts(w, s, blend, keep, d, base, length, kept=(1.0, 1.0)):
    """bloc97 (2023): first between interpolation and NTK, then between that and nothing."""
    mixed = []
    for i, (f, g) in enumerate(zip(w, ntk(w, s, d), strict=True)):
        beta = (1 - ramp(i, *blend, d, base, length)) * kept[0]
        gamma = (1 - ramp(i, *keep, d, base, length)) * kept[1]
        mixed.append(((1 - beta) * f / s + beta * g) * (1 - gamma) + f * gamma)
    return mixed
