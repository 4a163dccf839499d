"""Multiplication."""

from collections import Counter
from itertools import product

from posenc.lab.tasks import digits
from tests.tasks.law import best, even


def one_digit(least):
    return lambda base: even((13, a, 10, b, 12) for a, b in product(range(least, base), repeat=2))


def by_one_digit(task, n):
    """Of a second factor of one digit: beyond two digits, only 0 is worth a guess."""
    if n > 2:
        return 0.1, 0.1
    first = range(10) if n == 1 else range(10, 100)
    return best(Counter({(0, f"{p:0{n + 1}}"): c / 10 / len(first) for p, c in _counted(first, range(10))}))


def of_two(task, n):
    """The place of an answer tells how many digits the factors have together."""
    if n > 2:
        return 0.0, 0.0
    numbers = {1: range(1, 10), 2: range(10, 100)}
    pairs = [pair for pair in product(range(1, n + 1), repeat=2) if max(pair) == n]
    chance = Counter()
    for i, j in pairs:
        for p, c in _counted(numbers[i], numbers[j]):
            chance[i + j, str(p)] += c / len(numbers[i]) / len(numbers[j]) / len(pairs)
    return best(chance)


def _counted(first, second):
    return Counter(a * b for a in first for b in second).items()


EXAMPLES = [
    ("multiply_nxm(m=2)", [13, 1, 2, 10, 0, 3, 12], [6, 3, 0, 0, 14]),
    ("multiply_nxm", [13, 7, 0, 4, 10, 0, 12], [0, 0, 0, 0, 14]),
    ("multiplication_abacus", [13, 3, 5, 6, 10, 9, 4, 12], [7, 9, 9, 1, 3, 14]),
]

LAWS = {"multiply_nxm": (1, one_digit(0), 10), "multiplication_abacus": (1, one_digit(1), 10)}

FLOORS = {"multiply_nxm": by_one_digit, "multiplication_abacus": of_two}
FLOOR_SIZES = {"multiply_nxm": [1, 2, 40], "multiplication_abacus": [1, 2, 15]}
VARIED = ["multiplication_abacus"]

BROKEN = [
    ("multiply_nxm(m=2)", 6, "multiplication", "product", lambda a, b: digits.product(a, b[:, ::-1])),
    ("multiplication_abacus", 6, "multiplication", "carried", lambda columns, most: digits.carried(columns, 18)),
    ("multiplication_abacus", 6, "multiplication", "written", lambda x: 0 * digits.written(x) + x.shape[1]),
]
