"""bloc97 (2023), jquesnelle/yarn: two ramps over the index of pairs."""

from tests.oracles import turned


def attend(scheme, heads, q, k, v, x, pos, seen):
    d = turned.width(scheme, q)
    kept = scheme.ntk_factor, scheme.extrapolation_factor
    about = scheme.factor, scheme.blend, scheme.keep, d, scheme.base, scheme.original, kept
    rates = turned.by_parts(turned.plain(scheme, d), *about)
    return turned.attend(scheme, heads, q, k, v, pos, seen, lambda p: rates)
