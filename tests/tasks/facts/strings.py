"""Strings folded into one class, or written out again."""

from itertools import product

import jax.numpy as jnp

from posenc.lab.tasks import automata, draw
from tests.tasks.law import even, strings, words


def modular_arithmetic(signs):
    return even((a, 5 + s, b) for a, s, b in product(range(5), range(signs), range(5)))


def missing_duplicate(half):
    return even(
        (*(2 if at == hole else (x + x)[at] for at in range(2 * half)), 3)
        for x in words(2, half)
        for hole in range(2 * half)
    )


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
