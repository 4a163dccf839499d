"""Strings folded into one class, or written out again."""

from itertools import product

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

PLANTED = [
    ("even_pairs", "automata:EvenPairs.make", "pick(x, n - 1)", "pick(x, n - 2)", "oracle"),
    ("parity_check", "automata:ParityCheck.make", "total(inside(x, n))", "total(x)", "oracle"),
    ("cycle_navigation", "automata:CycleNavigation.make", "- n) % 5", "- n) % 4", "oracle"),
    ("cycle_navigation", "automata:CycleNavigation.make", "(total(inside(x, n)) - n)", "total(inside(x, n))", "oracle"),
    ("reverse_string", "strings:ReverseString.make", "n[:, None] - 1 - index(x)", "n[:, None] - index(x)", "oracle"),
    ("duplicate_string", "strings:DuplicateString.make", "[None, :] % n[:, None]", "[None, :] % n_max", "oracle"),
    ("duplicate_string", "strings:DuplicateString.make", "gather(x, j), 2 * n", "gather(x, j), 2 * n - 1", "form"),
    ("odds_first", "strings:OddsFirst.make", "n[:, None] + 1 - start", "n[:, None] + start", "oracle"),
    ("bucket_sort", "strings:BucketSort.make", "n[:, None], x, 5)", "n[:, None], x, 0)", "oracle"),
    ("bucket_sort", "strings:BucketSort.make", "n_max, 5)", "n_max, 4)", "law"),
    ("bucket_sort", "layout:slots", 'task.special("EMPTY")', "gather(answer, i - p[:, None])", "leak"),
    ("modular_arithmetic", "automata:_value", "jnp.where(before == MINUS, -d, d)", "d", "oracle"),
    ("missing_duplicate_string", "strings:MissingDuplicateString.make",
     "pick(twice, hole)", "pick(twice, (hole + 1) % 4)", "oracle"),
]  # fmt: skip
