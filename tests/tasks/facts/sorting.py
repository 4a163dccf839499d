"""Sorted lists."""

import math

import jax.numpy as jnp

from tests.tasks.law import even, words

VARIED = ["sort_multi"]


def symbols(many):
    return even((5 + 2, *x, 5 + 1) for x in words(many, 2))


def numbers(largest):
    """Two numbers from 8 on, in digits."""
    digits = lambda x: tuple(map(int, str(x)))  # noqa: E731
    return even((13, *digits(8 + a), 10, *digits(8 + b), 12) for a, b in words(largest - 7, 2))


def one_symbol_throughout(task, n):
    """All alike, by one symbol; the whole answer, by the commonest multiset."""
    most = math.factorial(n) / math.prod(
        math.factorial(n // task.symbols + (s < n % task.symbols)) for s in range(task.symbols)
    )
    return task.symbols**-n, most * task.symbols**-n


def digits_alike(task, n):
    """11, 111 and 1111 are right with 1 alone; a comma is not, so two numbers never are."""
    span = task.largest - task.smallest + 1
    alike = sum(set(str(x)) == {"1"} for x in range(task.smallest, task.largest + 1))
    return (alike / span, 1 / span) if n == 1 else (0.0, (2 if n == 2 else 6) * span**-n)


EXAMPLES = [
    ("sort_single", [52, 4, 1, 3, 51], [1, 3, 4, 53]),
    ("sort_single(symbols=5)", [7, 4, 4, 0, 6], [0, 4, 4, 8]),
    ("sort_multi", [13, 3, 1, 10, 1, 2, 0, 12], [3, 1, 10, 1, 2, 0, 14]),
    ("sort_multi", [13, 1, 2, 0, 10, 3, 1, 10, 9, 9, 12], [3, 1, 10, 9, 9, 10, 1, 2, 0, 14]),
]

LAWS = {"sort_single(symbols=5)": (2, symbols, 5), "sort_multi(smallest=8, largest=12)": (2, numbers, 12)}

FLOORS = {"sort_single": one_symbol_throughout, "sort_multi": digits_alike}
FLOOR_SIZES = {"sort_single": [1, 2, 8], "sort_multi": [1, 3, 8]}


def unsorted(x, n, top):
    return x


def descending(x, n, top):
    inside = jnp.arange(x.shape[1])[None, :] < n[:, None]
    return -jnp.sort(jnp.where(inside, -x, 0), axis=1)


BROKEN = [
    (task, 6, "sorting", "_ascending", broken)
    for task in ("sort_single", "sort_multi")
    for broken in (unsorted, descending)
]
