"""Recall by content."""

from itertools import permutations

from law import even, most_frequent, words

from posenc.tasks import draw


def associative_recall(keys):
    sep, bos = keys + 3, keys + 4
    return even(
        (bos, j, keys + u, k, keys + v, asked, sep)
        for j, k in permutations(range(keys), 2)
        for u, v in words(2, 2)
        for asked in (j, k)
    )


EXAMPLES = [
    ("associative_recall", [82, 5, 70, 9, 66, 5, 81], [70, 83]),
]

LAWS = {
    "associative_recall(keys=3, values=2)": (2, associative_recall, 3),
}

FLOORS = {
    "associative_recall": lambda t, n: (most_frequent(t.values, n), 1 / t.values),
}

BROKEN = [("associative_recall", 8, "recall", "pick", lambda x, place: draw.pick(x, place * 0))]
