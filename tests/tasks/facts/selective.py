"""Selective copying and induction."""

from itertools import combinations

from tests.tasks.law import words


def selective_copy(places):
    found = []
    for at in combinations(range(places), 2):
        for word in words(2, 2):
            text = dict.fromkeys(range(places), 2) | dict(zip(at, word, strict=True))
            found.append(tuple(text[i] for i in range(4) if i in text))
    law = {}
    for text in found:
        law[text] = law.get(text, 0) + 1 / len(found)
    return law


def induction(starts):
    law = {}
    for j in range(starts):
        for noise in words(2, 4):
            text = list(noise)
            text[j] = text[3] = 2
            law[tuple(text)] = law.get(tuple(text), 0) + 1 / (starts * 16)
    return law


LAWS = {"selective_copy(data=2, symbols=2)": (4, selective_copy, 4), "induction(symbols=2)": (4, induction, 2)}

PLANTED = [
    ("selective_copy", "selective:SelectiveCopy.make",
     "jnp.sort(distinct_positions(where, n, self.data, n_max), axis=1)",
     "distinct_positions(where, n, self.data, n_max)", "oracle"),
    # the last place is blank
    ("selective_copy(data=2, symbols=2)", "selective:SelectiveCopy.make",
     "distinct_positions(where, n,", "distinct_positions(where, n - 1,", "law"),
    ("induction", "selective:Induction.make", "pick(x, j + 1)", "pick(x, j)", "oracle"),
]  # fmt: skip
