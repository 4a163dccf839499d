"""Labels in the order of their numbers."""

from itertools import product

from posenc.lab.tasks import labels
from tests.tasks.law import even


def one_entry(symbols):
    sep, bos = 12 + 3 + 1, 12 + 3 + 2
    return even((bos, 12 + s, 10, x, sep) for s, x in product(range(symbols), range(1, 10)))


def first_label(task, n):
    """One class is right for a list of one. The place of an answer tells how many digits the numbers have together."""
    alone = 1 / (2 * n - 1) / task.labels
    if n == 1:
        return alone, alone
    risen = 45 / 81 * (1 + 1 / 4) / 3 / task.labels  # two numbers of one digit, the first not larger, in two of 3 pairs
    return alone, risen if n == 2 else None


EXAMPLES = [
    ("sort_labels", [116, 12, 10, 7, 3, 11, 13, 10, 5, 11, 14, 10, 0, 2, 1, 115], [13, 11, 12, 11, 14, 117]),
    ("sort_labels", [116, 113, 10, 4, 11, 12, 10, 4, 115], [113, 11, 12, 117]),
]

LAWS = {"sort_labels(labels=3)": (1, one_entry, 3)}

FLOORS = {"sort_labels": first_label}
FLOOR_SIZES = {"sort_labels": [1, 2, 10]}
VARIED = ["sort_labels"]

ORDER = labels._order

BROKEN = [
    ("sort_labels", 8, "labels", "_order", lambda values, listed: ORDER(values[:, :, :-1], listed)),
    ("sort_labels", 8, "labels", "_order", lambda values, listed: ORDER(values[:, :, ::-1], listed)),
    ("sort_labels", 8, "labels", "_order", lambda values, listed: ORDER(values, listed | True)),
]
