"""Peng et al. (2024), §3.2-3.4: frequencies between themselves and a share of themselves, and a size for both sides."""

import math

from tests.oracles import turned


def attend(scheme, heads, q, k, v, x, pos, seen):
    d, s = turned.width(scheme, q), scheme.factor
    about = s, scheme.beta_fast, scheme.beta_slow, d, scheme.base, scheme.original, scheme.truncate
    rates = turned.yarn(turned.plain(scheme, d), *about, scheme.extrapolation_factor)
    rates, size = turned.tapered(rates, scheme.taper), scheme.attention_factor
    if size == "log":
        up, down = (0.1 * m * math.log(s) + 1 for m in (scheme.mscale, scheme.mscale_all_dim))
        size = up / down
    return turned.attend(scheme, heads, q, k, v, pos, seen, lambda p: rates, lambda p: size)
