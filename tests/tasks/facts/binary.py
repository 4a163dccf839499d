"""Arithmetic on binary numbers."""

from itertools import product

from tests.tasks.law import even


def bits(number, width):
    """The lowest first."""
    return tuple(number >> i & 1 for i in range(width))


def pairs(n):
    """Numbers above 0, the first in 1 to so many places, and the sign between them."""

    def law(longest):
        found = {}
        for a in range(1, longest + 1):
            b = n - 1 - a
            each = list(product(range(1, 2**a), range(1, 2**b) or [0]))
            found |= {(*bits(x, a), 2, *bits(y, b)): 1 / len(each) / longest for x, y in each}
        return found

    return law


def alone(numbers):
    return even(bits(number, 2 + (number > 3)) for number in range(numbers))


def radicands(highest):
    return even(bits(number, 5 + (number > 31))[::-1] for number in range(1, highest + 1))


LAWS = {
    "binary_addition": (5, pairs(5), 3),
    "binary_addition(as_released=True)": (2, alone, 3),
    "binary_multiplication": (6, pairs(6), 4),
    "binary_multiplication(as_released=True)": (2, alone, 3),
    "compute_sqrt": (5, radicands, 31),
}

PLANTED = [
    ("binary_addition", "binary:BinaryAddition.make", "add(x, y)", "add(x[:, ::-1], y[:, ::-1])[:, ::-1]", "oracle"),
    # a carry that is handed on gets lost
    ("binary_addition", "binary:add", "s == 2, s == 1", "s == 2, s == 3", "oracle"),
    ("binary_multiplication", "binary:BinaryMultiplication.make", "multiply(x, y)", "add(x, y)", "oracle"),
    ("compute_sqrt", "binary:ComputeSqrt.make", "first + 1))", "first + 1))[:, ::-1]", "oracle"),
]  # fmt: skip
