"""Labels in the order of their numbers."""

from itertools import product

from posenc.lab.tasks import labels
from tests.tasks.law import even


def one_entry(symbols):
    sep, bos = 12 + 3 + 1, 12 + 3 + 2
    return even((bos, 12 + s, 10, x, sep) for s, x in product(range(symbols), range(1, 10)))


LAWS = {"sort_labels(labels=3)": (1, one_entry, 3)}

VARIED = ["sort_labels"]

ORDER = labels._order

BROKEN = [
    ("sort_labels", 8, "labels", "_order", lambda values, listed: ORDER(values[:, :, :-1], listed)),
    ("sort_labels", 8, "labels", "_order", lambda values, listed: ORDER(values[:, :, ::-1], listed)),
    ("sort_labels", 8, "labels", "_order", lambda values, listed: ORDER(values, listed | True)),
]
