"""Needles in a haystack of one kind of filler, 0."""

from itertools import permutations

from tests.tasks.law import words


def needle(blocks):
    """Two needles `KEY k VAL v` among ten tokens: two of four blocks; keys 1, 2, values 3, 4; then 5, 6, 7."""
    law = {}
    for first, second in permutations(range(blocks), 2):
        for (a, b), (u, v) in ((k, w) for k in permutations((1, 2)) for w in words(2, 2)):
            put = {first: (5, a, 6, 3 + u), second: (5, b, 6, 3 + v)}
            hay = [token for block in range(4) for token in put.get(block, (0,))]
            for asked in (a, b):
                text = (10, *hay, 7, asked, 9)
                law[text] = law.get(text, 0) + 1 / (blocks * (blocks - 1) * 2 * 4 * 2)
    return law


def two_of_one_key(blocks):
    """The same where both needles have one key."""
    law = {}
    for first, second in permutations(range(blocks), 2):
        for k, (u, v) in ((k, w) for k in (1, 2) for w in words(2, 2)):
            put = {first: (5, k, 6, 3 + u), second: (5, k, 6, 3 + v)}
            hay = [token for block in range(4) for token in put.get(block, (0,))]
            text = (10, *hay, 7, k, 9)
            law[text] = law.get(text, 0) + 1 / (blocks * (blocks - 1) * 2 * 4)
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
    "needle(fillers=1, keys=2, values=2, needles=2, width=1)": (10, needle, 4),
    "needle(fillers=1, keys=2, values=2, needles=2, width=1, per_key=2)": (10, two_of_one_key, 4),
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
