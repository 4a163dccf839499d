"""Arithmetic on binary numbers."""

import math
from itertools import product

import jax.numpy as jnp
import numpy as np

from posenc.lab.tasks import binary
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


def known(law, combine):
    """Both floors of the answers to these prompts, ended by a 2."""
    count = {}
    for prompt, p in law.items():
        at = prompt.index(2)
        a, b = (sum(bit << i for i, bit in enumerate(part)) for part in (prompt[:at], prompt[at + 1 :]))
        number = combine(a, b)
        for slot, found in enumerate((*bits(number, number.bit_length()), 2)):
            count.setdefault(slot, np.zeros(3))[found] += p
    count = np.array(list(count.values()))
    return count.sum(0).max() / count.sum(), count.max(1).sum() / count.sum()


def roots(n):
    """A root r belongs to 2r + 1 numbers, fewer where the numbers end, and the 0 of them is never drawn."""
    r = np.arange(math.isqrt(2**n - 1) + 1)
    p = (np.minimum((r + 1) ** 2, 2**n) - r**2 - (r == 0)) / (2**n - 1)
    one = np.array([(p * (r >> i & 1)).sum() for i in range((n + 1) // 2)])
    return max(one.mean(), 1 - one.mean()), np.maximum(one, 1 - one).mean()


EXAMPLES = [
    ("binary_addition", [0, 0, 1, 2, 0, 1, 1, 0, 1], [0, 1, 0, 1, 1, 2]),
    ("binary_addition", [1, 2, 1], [0, 1, 2]),
    ("binary_addition(as_released=True)", [0], [0, 2]),
    ("binary_addition(as_released=True)", [1, 0], [1, 2]),
    ("binary_addition(as_released=True)", [0, 1], [0, 1, 2]),
    ("binary_multiplication", [0, 0, 1, 2, 0, 1, 1, 0, 1], [0, 0, 0, 1, 1, 0, 1, 2]),
    ("binary_multiplication", [1, 2, 1], [1, 2]),
    ("binary_multiplication(as_released=True)", [0], [2]),
    ("binary_multiplication(as_released=True)", [1, 0], [0, 2]),
    ("compute_sqrt", [1, 0, 0, 1, 0, 1], [1, 1, 0]),
    ("compute_sqrt", [1, 1, 1], [1, 0]),
    ("compute_sqrt", [0, 0, 0, 1], [0, 1]),
]

LAWS = {
    "binary_addition": (5, pairs(5), 3),
    "binary_addition(as_released=True)": (2, alone, 3),
    "binary_multiplication": (6, pairs(6), 4),
    "binary_multiplication(as_released=True)": (2, alone, 3),
    "compute_sqrt": (5, radicands, 31),
}

FLOORS = {
    "binary_addition": lambda t, n: known(pairs(n)(n - 2), int.__add__),
    "binary_multiplication": lambda t, n: known(pairs(n)(n - 2), int.__mul__),
    "compute_sqrt": lambda t, n: roots(n),
}

FLOOR_SIZES = {"binary_addition": [3, 5, 9], "binary_multiplication": [3, 5, 9], "compute_sqrt": [1, 2, 5, 40]}

ADD, ROOT, ENDED, CARRIES = binary.add, binary.root, binary.ended, binary._carries


def high_bits_first(x, y):
    return ADD(x[:, ::-1], y[:, ::-1])[:, ::-1]


def carried_once(makes, passes):
    """A carry that is handed on gets lost."""
    return CARRIES(makes, jnp.zeros_like(passes))


def end_not_scored(*given):
    batch = ENDED(*given)
    return batch._replace(score=batch.score & (batch.targets != 2))


BROKEN = [
    ("binary_addition", 8, "binary", "add", high_bits_first),
    ("binary_addition", 8, "binary", "_carries", carried_once),
    ("binary_addition", 8, "binary", "ended", end_not_scored),
    ("binary_multiplication", 8, "binary", "multiply", ADD),
    ("compute_sqrt", 8, "binary", "root", lambda pairs: ROOT(pairs)[:, ::-1]),
    ("compute_sqrt", 8, "binary", "_carries", carried_once),
]
