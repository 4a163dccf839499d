"""bloc97 (2023): base · factor^(d / (d - 2)) in the place of the base."""

from tests.oracles import turned


def attend(scheme, heads, q, k, v, x, pos, seen):
    d = turned.width(scheme, q)
    base = scheme.base * scheme.factor ** (d / (d - 2))
    rates = [base ** (-2 * i / d) for i in range(d // 2)]
    return turned.attend(scheme, heads, q, k, v, pos, seen, lambda p: rates)
