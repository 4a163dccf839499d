"""Arithmetic with brackets."""

import functools
from itertools import product

import jax.numpy as jnp
import numpy as np

from posenc.lab.tasks import brackets, draw

PLUS, MINUS, TIMES = 5, 6, 7


def written(n, operators, left_most=None):
    """The law of their grammar: tokens of `modular_arithmetic_brackets` and their chance."""
    if n < 1:
        return {(): 1.0}
    if n < 5:
        before, after = [(), (6,), (8,), (8, 6)][n - 1], [(), (), (9,), (9,)][n - 1]
        return {(*before, d, *after): 0.2 for d in range(5)}
    found = {}
    splits = range(1, (left_most or n - 4) + 1)
    for left in splits:
        sides = written(left, operators).items(), written(n - 3 - left, operators).items()
        for (a, p), (b, q), op in product(*sides, range(operators)):
            found[8, *a, PLUS + op, *b, 9] = p * q / operators / len(splits)
    return found


def worth(text):
    return eval("".join("01234+-*()"[token] for token in text)) % 5


def equations(n):
    """x hides the next digit from one of so many places on, going round."""

    def law(places):
        found = {}
        for text, p in written(n - 2, 2).items():
            digits = [i for i, token in enumerate(text) if token < 5]
            for start in range(places):
                at = min(digits, key=lambda i: (i - start) % (n - 2))
                shown = [9 if i == at else token - (token > 7) for i, token in enumerate(text)]
                shown = (*shown, 10, worth(text))
                found[shown] = found.get(shown, 0) + p / places
        return found

    return law


@functools.cache
def values(n):
    """How likely each value is, by the same recursion."""
    if n < 5:
        return np.full(5, 0.2)
    p = np.zeros(5)
    a, b = np.indices((5, 5))
    for left in range(1, n - 3):
        both = np.outer(values(left), values(n - 3 - left)) / 3 / (n - 4)
        for value in (a + b, a - b, a * b):
            np.add.at(p, value % 5, both)
    return p


EXAMPLES = [
    ("modular_arithmetic_brackets", [8, 3, 6, 2, 9], [1]),
    ("modular_arithmetic_brackets", [6, 2], [3]),
    ("modular_arithmetic_brackets", [8, 4, 6, 8, 6, 3, 9, 9], [2]),
    ("modular_arithmetic_brackets", [8, 8, 2, 7, 4, 9, 5, 4, 9], [2]),
    ("solve_equation", [7, 9, 5, 1, 8, 10, 4], [3]),
    ("solve_equation", [6, 9, 10, 1], [4]),
    ("solve_equation(as_released=True)", [0, 0], [0]),
]

LAWS = {"modular_arithmetic_brackets": (7, lambda left: written(7, 3, left), 3), "solve_equation": (9, equations(9), 7)}

FLOORS = {"modular_arithmetic_brackets": lambda t, n: (values(n).max(),) * 2}
FLOOR_SIZES = {"modular_arithmetic_brackets": [1, 7, 40], "solve_equation": [3, 9, 40]}

VALUE = brackets._value


def without_minus(length, left, d, op):
    return VALUE(length, left, d, jnp.where(op == MINUS, PLUS, op))


def operands_swapped(length, left, d, op):
    return -VALUE(length, left, d, op) % 5


BROKEN = [
    ("modular_arithmetic_brackets", 9, "brackets", "_value", without_minus),
    ("modular_arithmetic_brackets", 9, "brackets", "_value", operands_swapped),
    ("solve_equation", 9, "brackets", "pick", lambda x, place: draw.pick(x, (place + 1) % 4)),
]
