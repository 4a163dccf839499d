"""Strings folded into one class, or written out again."""

import itertools
from itertools import product

import jax.numpy as jnp
import numpy as np
from scipy.stats import binom

from posenc.lab.tasks import automata, draw
from tests.tasks.law import even, most_frequent, strings, words


def modular_arithmetic(signs):
    return even((a, 5 + s, b) for a, s, b in product(range(5), range(signs), range(5)))


def missing_duplicate(half):
    return even(
        (*(2 if at == hole else (x + x)[at] for at in range(2 * half)), 3)
        for x in words(2, half)
        for hole in range(2 * half)
    )


def sorted_by_position(n):
    """Bucket sort: the best symbol at place i, where the sorted symbol is ≤ c if more than i of n draws are."""
    upto = binom.sf(np.arange(n)[:, None], n, np.arange(6)[None, :] / 5)
    return np.diff(upto, axis=1).max(axis=1).mean()


def arithmetic(n):
    length, values = n - 1 + n % 2, []
    signs = [range(5), ("+", "-", "*")]
    for text in itertools.product(*(signs[at % 2] for at in range(length))):
        values.append(eval("".join(map(str, text))) % 5)
    return max(map(values.count, range(5))) / len(values)


def walk(n):
    ends = [sum(steps) % 5 for steps in itertools.product((-1, 0, 1), repeat=n)]
    return max(map(ends.count, range(5))) / len(ends)


EXAMPLES = [
    ("even_pairs", [0, 1, 0, 1, 0, 0, 1], [1]),
    ("parity_check", [1, 0, 1, 0, 1, 0, 0], [1]),
    ("cycle_navigation", [2, 0, 1, 0, 0], [3]),
    ("modular_arithmetic", [1, 5, 2, 7, 3], [2]),
    ("modular_arithmetic", [0, 6, 2, 7, 2], [1]),
    ("modular_arithmetic", [*[4, 7] * 15, 4], [1]),
    ("modular_arithmetic(as_released=True)", [*[4, 7] * 15, 4], [0]),
    ("reverse_string", [0, 1, 1], [1, 1, 0]),
    ("duplicate_string", [1, 0], [1, 0, 1, 0]),
    ("missing_duplicate_string", [0, 1, 1, 0, 0, 2, 1, 0], [1]),
    ("missing_duplicate_string", [2, 0, 0, 0, 3], [0]),
    ("missing_duplicate_string(as_released=True)", [1], [1]),
    ("odds_first", [0, 0, 1, 1, 0, 1, 0, 1], [0, 1, 1, 1, 0, 1, 0, 0]),
    ("odds_first(order='as_described')", [0, 0, 1, 1, 0, 1, 0, 1], [0, 1, 0, 0, 0, 1, 1, 1]),
    ("bucket_sort", [1, 0, 2, 4, 1], [0, 1, 1, 2, 4]),
]

LAWS = {
    "reverse_string": (5, strings(2), 5),
    "duplicate_string": (5, strings(2), 5),
    "odds_first": (5, strings(2), 5),
    "even_pairs": (5, strings(2), 5),
    "parity_check": (5, strings(2), 5),
    "cycle_navigation": (3, strings(3), 3),
    "bucket_sort": (2, strings(5), 2),
    "modular_arithmetic": (4, modular_arithmetic, 3),
    "missing_duplicate_string": (5, missing_duplicate, 2),
}

FLOORS = {
    "bucket_sort": lambda t, n: (0.2, sorted_by_position(n)),
    "even_pairs": lambda t, n: (1.0, 1.0) if n == 1 else (0.5, 0.5),
    "modular_arithmetic": lambda t, n: (arithmetic(n), arithmetic(n)) if n < 6 else None,
    "cycle_navigation": lambda t, n: (walk(n), walk(n)) if n < 9 else (0.2, 0.2),
}

BAGS = {
    "reverse_string": lambda t, n: most_frequent(2, n),
    "duplicate_string": lambda t, n: most_frequent(2, n),
    "odds_first": lambda t, n: most_frequent(2, n),
    "bucket_sort": lambda t, n: most_frequent(5, n),
}

FLOOR_SIZES = {"bucket_sort": [1, 2, 40], "modular_arithmetic": [1, 3, 5], "cycle_navigation": [1, 2, 40]}


VALUE = automata._value


def without_minus(d, after, many, *, reduced):
    return VALUE(d, jnp.where(after == automata.MINUS, automata.PLUS, after), many, reduced=reduced)


BROKEN = [
    ("modular_arithmetic", 8, "automata", "_value", without_minus),
    ("missing_duplicate_string", 8, "strings", "pick", lambda x, place: draw.pick(x, (place + 1) % 4)),
]

STRINGS, AUTOMATA = "posenc.lab.tasks.strings:", "posenc.lab.tasks.automata:"

PLANTED = [
    ("even_pairs", AUTOMATA + "EvenPairs.make", "pick(x, n - 1)", "pick(x, n - 2)", "oracle"),
    ("parity_check", AUTOMATA + "ParityCheck.make", "total(inside(x, n))", "total(x)", "oracle"),
    ("cycle_navigation", AUTOMATA + "CycleNavigation.make", "- n) % 5", "- n) % 4", "oracle"),
    (
        "cycle_navigation",
        AUTOMATA + "CycleNavigation.make",
        "(total(inside(x, n)) - n)",
        "total(inside(x, n))",
        "oracle",
    ),
    ("reverse_string", STRINGS + "ReverseString.make", "n[:, None] - 1 - index(x)", "n[:, None] - index(x)", "oracle"),
    ("duplicate_string", STRINGS + "DuplicateString.make", "[None, :] % n[:, None]", "[None, :] % n_max", "oracle"),
    ("duplicate_string", STRINGS + "DuplicateString.make", "gather(x, j), 2 * n", "gather(x, j), 2 * n - 1", "form"),
    ("odds_first", STRINGS + "OddsFirst.make", "n[:, None] + 1 - start", "n[:, None] + start", "oracle"),
    ("bucket_sort", STRINGS + "BucketSort.make", "n[:, None], x, 5)", "n[:, None], x, 0)", "oracle"),
    ("bucket_sort", STRINGS + "BucketSort.make", "n_max, 5)", "n_max, 4)", "law"),
    ("bucket_sort", "posenc.lab.tasks.layout:slots", 'task.special("EMPTY")', "gather(answer, i - p[:, None])", "leak"),
]
