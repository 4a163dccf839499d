"""Labels in the order of their numbers."""

from itertools import product

from tests.tasks.law import even


def one_entry(symbols):
    sep, bos = 12 + 3 + 1, 12 + 3 + 2
    return even((bos, 12 + s, 10, x, sep) for s, x in product(range(symbols), range(1, 10)))


LAWS = {"sort_labels(labels=3)": (1, one_entry, 3)}

VARIED = ["sort_labels"]

PLANTED = [
    ("sort_labels", "labels:SortLabels.make", "_order(values,", "_order(values[:, :, :-5],", "oracle"),
    ("sort_labels", "labels:SortLabels.make", "_order(values,", "_order(values[:, :, ::-1],", "oracle"),
    ("sort_labels", "labels:SortLabels.make",
     "entry < length[:, None]))", "entry < n_max + 0 * length[:, None]))", "oracle"),
]  # fmt: skip
