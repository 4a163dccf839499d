"""emozilla (2023) and jquesnelle/yarn: a factor that grows with the text, here one document."""

import math

from tests.oracles import turned


def attend(scheme, heads, q, k, v, x, pos, seen):
    d, length, L0 = turned.width(scheme, q), float(pos.max()) + 1, scheme.original
    w, s, size = turned.plain(scheme, d), max(length / L0, 1.0), 1.0
    if length > L0 and scheme.rule == "ntk":
        base = scheme.base * (scheme.factor * length / L0 - (scheme.factor - 1)) ** (d / (d - 2))
        w = [base ** (-2 * i / d) for i in range(d // 2)]
    elif scheme.rule == "linear":
        w = [f / s for f in w]
    elif length > L0 and scheme.rule == "by_parts":
        w = turned.by_parts(w, s, (1.25, 0.75), (16, 2), d, scheme.base, L0)
    elif length > L0 and scheme.rule == "yarn":
        w, size = turned.yarn(w, s, 32, 1, d, scheme.base, L0), 0.1 * math.log(s) + 1
    return turned.attend(scheme, heads, q, k, v, pos, seen, lambda p: w, lambda p: size)
