"""Addition, the highest digit first."""

import numpy as np

from tests.tasks.law import even, words

VARIED = ["addition_kazemnejad"]


def digits(ten):
    return even((13, a, 10, b, 12) for a, b in words(ten, 2))


def commonest_sum(task, n):
    """Where both operands have n digits alone, the sums' law is a triangle; elsewhere a sum is rare."""
    if n > task.shortest:
        return 0.0, 0.0
    low = 10 ** (n - 1) if n > 1 else 0
    span = 10**n - low
    law = {2 * low + s: min(s + 1, 2 * span - 1 - s) / span**2 for s in range(2 * span - 1)}
    alike = (sum(p for total, p in law.items() if set(str(total)) == {c}) for c in "0123456789")
    return max(alike), max(law.values())


EXAMPLES = [
    ("addition_kazemnejad", [13, 5, 3, 10, 7, 12], [6, 0, 14]),
    ("addition_kazemnejad", [13, 9, 9, 9, 9, 10, 1, 0, 0, 1, 12], [1, 1, 0, 0, 0, 14]),
    ("addition_kazemnejad(shortest=1)", [13, 0, 10, 0, 12], [0, 14]),
]

LAWS = {"addition_kazemnejad(shortest=1)": (1, digits, 10)}

FLOORS = {"addition_kazemnejad": commonest_sum}
FLOOR_SIZES = {"addition_kazemnejad": [4, 8]}


def leading_zero(digits):
    """As long as the longest sum."""
    return np.int32(digits.shape[1]) + 0 * digits[:, 0]


BROKEN = [
    ("addition_kazemnejad", 6, "long_addition", "carried", lambda columns, most: columns % 10),
    ("addition_kazemnejad", 6, "long_addition", "written", leading_zero),
]
