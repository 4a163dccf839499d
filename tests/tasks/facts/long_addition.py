"""Addition, the highest digit first."""

import numpy as np

from tests.tasks.law import even, words

VARIED = ["addition_kazemnejad"]


def digits(ten):
    return even((13, a, 10, b, 12) for a, b in words(ten, 2))


LAWS = {"addition_kazemnejad(shortest=1)": (1, digits, 10)}


def leading_zero(digits):
    """As long as the longest sum."""
    return np.int32(digits.shape[1]) + 0 * digits[:, 0]


BROKEN = [
    ("addition_kazemnejad", 6, "long_addition", "carried", lambda columns, most: columns % 10),
    ("addition_kazemnejad", 6, "long_addition", "written", leading_zero),
]
