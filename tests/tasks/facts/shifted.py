"""Tasks behind fillers."""

from tests.tasks.law import even, words


def shifted(fillers):
    return even((3,) * fillers + x for x in words(3, 4))


LAWS = {"shifted(task='token_k_back(symbols=3)', size=4)": (2, shifted, 2)}

PLANTED = [
    ("shifted(task='copy(symbols=5)', size=6)", "shifted:_renamed", "tokens + 1", "tokens", "oracle"),
]  # fmt: skip
