"""Multiplication."""

from itertools import product

from tests.tasks.law import even


def one_digit(least):
    return lambda base: even((13, a, 10, b, 12) for a, b in product(range(least, base), repeat=2))


LAWS = {"multiply_nxm": (1, one_digit(0), 10), "multiplication_abacus": (1, one_digit(1), 10)}

VARIED = ["multiplication_abacus"]

PLANTED = [
    ("multiply_nxm(m=2)", "multiplication:_products", "product(a, b)", "product(a, b[:, ::-1])", "oracle"),
    ("multiplication_abacus", "multiplication:_products", "81 * min(a.shape[1], b.shape[1])", "18", "oracle"),
    ("multiplication_abacus", "multiplication:_products",
     "written(result)", "jnp.full_like(n, result.shape[1])", "oracle"),
]  # fmt: skip
