"""Or of bits."""

from collections import Counter
from itertools import product

from tests.tasks.law import even, words


def fair(longest):
    pairs = [pair for pair in product(range(1, longest + 1), repeat=2) if max(pair) == longest]
    law = {}
    for i, j in pairs:
        law |= {(5, *a, 2, *b, 4): 0.5 ** (i + j) / len(pairs) for a in words(2, i) for b in words(2, j)}
    return law


def released(longest):
    """All triples of two lengths and a place of the one, which the shorter string holds, or either."""
    found = Counter()
    for i, j in product(range(1, longest + 1), repeat=2):
        for one in range(min(i, j)):
            a, b = ([int(at == one) for at in range(size)] for size in (i, j))
            if max(i, j) == longest and i <= j:
                found[(5, *a, 2, *[0] * j, 4)] += 0.5 if i == j else 1
            if max(i, j) == longest and j <= i:
                found[(5, *[0] * i, 2, *b, 4)] += 0.5 if i == j else 1
    return {prompt: count / found.total() for prompt, count in found.items()}


def released_at(other):
    """A first string of 5 bits, a second of so many."""
    return even((5, *[0] * 5, 2, *(int(at == one) for at in range(other)), 4) for one in range(other))


LAWS = {
    "bitwise_or": (3, fair, 3),
    "bitwise_or(bits='as_released')": (4, released, 4),
    "bitwise_or(bits='as_released', other=3)": (5, released_at, 3),
}

VARIED = ["bitwise_or"]

PLANTED = [
    ("bitwise_or", "bitwise:BitwiseOr.make", "sign=OR, backwards=True", "sign=OR, backwards=False", "oracle"),
]  # fmt: skip
