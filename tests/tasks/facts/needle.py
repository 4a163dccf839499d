"""Needles in a haystack of one kind of filler, 0."""

from collections import Counter
from itertools import permutations, product

from tests.tasks.law import words


def needles(keys):
    """Two needles `KEY k VAL v` among ten tokens: two of four blocks; keys 1, 2, values 3, 4; then 5, 6, 7."""

    def law(blocks):
        found = Counter()
        for (first, second), (a, b), (u, v) in product(permutations(range(blocks), 2), keys, words(2, 2)):
            put = {first: (5, a, 6, 3 + u), second: (5, b, 6, 3 + v)}
            hay = [token for block in range(4) for token in put.get(block, (0,))]
            found.update((10, *hay, 7, asked, 9) for asked in {a, b})
        return {text: count / found.total() for text, count in found.items()}

    return law


def passkey(starts):
    """One digit, filler 10, KEY 11, in four tokens."""
    law = {}
    for start in range(starts):
        for digit in range(10):
            text = [10] * 5
            text[start : start + 2] = [11, digit]
            text = (14, *text[:4], 13)
            law[text] = law.get(text, 0) + 1 / (10 * starts)
    return law


LAWS = {
    "needle(fillers=1, keys=2, values=2, needles=2, width=1)": (10, needles(((1, 2), (2, 1))), 4),
    "needle(fillers=1, keys=2, values=2, needles=2, width=1, per_key=2)": (10, needles(((1, 1), (2, 2))), 4),
    "passkey(fillers=1, digits=1)": (4, passkey, 3),
}

PLANTED = [
    ("needle(needles=4, width=1, per_key=2)", "needle:Needle.make",
     "jnp.argsort(at, axis=2)", "jnp.argsort(-at, axis=2)", "oracle"),
    # the last digit stands behind the end
    ("passkey", "needle:Passkey.make", "n - 1 - self.digits", "n - self.digits", "oracle"),
    ("passkey(fillers=1, digits=1)", "needle:Passkey.make", "between(where, 0,", "between(where, 1,", "law"),
    ("needle(needles=3)", "needle:Needle.make", "gather(k, j)", "gather(k, 0 * j)", "oracle"),
]  # fmt: skip
