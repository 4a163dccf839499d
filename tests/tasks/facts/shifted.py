"""Tasks behind fillers."""

from tests.tasks.law import even, words


def shifted(fillers):
    return even((3,) * fillers + x for x in words(3, 4))


EXAMPLES = [
    ("shifted", [16, 16, 3, 5], [3]),
    ("shifted(task='copy(symbols=5)', size=2)", [5, 5, 8, 4, 3, 7], [4, 3, 9]),
    ("shifted(task='token_at_index(indices=2, symbols=3)', size=4)", [5, 5, 5, 2, 0, 1, 1, 4], [0]),
]

LAWS = {"shifted(task='token_k_back(symbols=3)', size=4)": (2, shifted, 2)}

BAGS = {"shifted": lambda t, n: None}

BROKEN = [("shifted(task='copy(symbols=5)', size=6)", 4, "shifted", "_renamed", lambda tokens, alphabet: tokens)]
