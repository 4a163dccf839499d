"""Multiplication."""

from itertools import product

from posenc.lab.tasks import digits
from tests.tasks.law import even


def one_digit(least):
    return lambda base: even((13, a, 10, b, 12) for a, b in product(range(least, base), repeat=2))


LAWS = {"multiply_nxm": (1, one_digit(0), 10), "multiplication_abacus": (1, one_digit(1), 10)}

VARIED = ["multiplication_abacus"]

BROKEN = [
    ("multiply_nxm(m=2)", 6, "multiplication", "product", lambda a, b: digits.product(a, b[:, ::-1])),
    ("multiplication_abacus", 6, "multiplication", "carried", lambda columns, most: digits.carried(columns, 18)),
    ("multiplication_abacus", 6, "multiplication", "written", lambda x: 0 * digits.written(x) + x.shape[1]),
]
