"""Recall by content."""

from itertools import permutations, product

from tests.tasks.law import even, words


def associative_recall(keys):
    sep, bos = keys + 3, keys + 4
    return even(
        (bos, j, keys + u, k, keys + v, asked, sep)
        for j, k in permutations(range(keys), 2)
        for u, v in words(2, 2)
        for asked in (j, k)
    )


def noisy(tokens):
    """Two keys, two values, and two pairs, of which the one not asked for is noise every other time."""
    law = {}
    for (j, k), (u, v), first in product(permutations(range(2)), words(2, 2), (True, False)):
        one, other, asked = (j, 2 + u), (k, 2 + v), j if first else k
        pairs = [(0.5, one, other)]
        for instead in product(range(4, 4 + tokens), repeat=2):
            pairs.append((0.5 / tokens**2, one, instead) if first else (0.5 / tokens**2, instead, other))
        for p, left, right in pairs:
            text = (22, *left, *right, asked, 21)
            law[text] = law.get(text, 0) + p / 16
    return law


def fuzzy(longest):
    """One key and its value, each of 1 to so many of two tokens."""
    law = {}
    for a, b in product(range(1, longest + 1), repeat=2):
        for k, v in product(words(2, a), words(2, b)):
            law[(6, *k, *(2 + x for x in v), *k, 5)] = 1 / (longest**2 * 2 ** (a + b))
    return law


def repeated(keys):
    """Three pairs with replacement; a third key is none of the tokens."""
    law = {}
    for k, v in product(words(keys, 3), words(2, 3)):
        told, text = {}, []
        for key, value in zip(k, v, strict=True):
            text += [[0, 1, 99][key], 2 + told.setdefault(key, value)]
        law[tuple(text)] = law.get(tuple(text), 0) + 1 / (keys**3 * 8)
    return law


VARIED = ["associative_recall(keys=8, values=8, fuzzy=True)"]

LAWS = {
    "associative_recall(keys=3, values=2)": (2, associative_recall, 3),
    "associative_recall(keys=2, values=2, noise=0.5)": (2, noisy, 16),
    "associative_recall(keys=2, values=2, fuzzy=True)": (1, fuzzy, 3),
    "associative_recall(keys=2, values=2, repeat=True)": (3, repeated, 2),
}

PLANTED = [
    ("associative_recall", "recall:AssociativeRecall.make", "pick(k, j)", "pick(k, 0 * j)", "oracle"),
    # every key is taken for the first
    ("associative_recall(keys=4, repeat=True)", "recall:_first", "argmax(same", "argmax(same | True", "oracle"),
    # no key is taken for an earlier one
    ("associative_recall(keys=4, fuzzy=True)", "recall:_first",
     "same = (k", "same = jnp.eye(k.shape[1], dtype=bool)[None] & (k", "oracle"),
]  # fmt: skip
