"""Recall of several keys in one text."""

from itertools import permutations


def mqar(slots):
    """One pair of six symbols, so two keys and three values, in eight tokens: the key comes again in one slot."""
    law = {}
    weights = [(g + 1) ** -0.5 for g in range(slots)]
    for k in (1, 2):
        for v in (3, 4, 5):
            for g, weight in enumerate(weights):
                text = [k, v] + [0] * 6
                text[2 + 2 * g : 3 + 2 * g] = [k]
                text = tuple(text[:8])
                law[text] = law.get(text, 0) + weight / sum(weights) / 6
    return law


def random_fillers(tokens):
    """Two pairs, eight tokens; two fillers from what is left of so many symbols when the two keys are taken."""
    law = {}
    for a, b in permutations((1, 2)):
        for u, v in permutations((3, 4, 5), 2):
            left = [t for t in range(tokens) if t not in (a, b)]
            for x in left:
                for y in left:
                    for first, second in ((a, b), (b, a)):
                        law[(a, u, b, v, first, x, second, y)] = 1 / (2 * 6 * 2 * len(left) ** 2)
    return law


LAWS = {
    "mqar(symbols=6, pairs=1, power=0.5)": (8, mqar, 3),
    "mqar(symbols=6, pairs=2, power=1.0, random_non_queries=True)": (8, random_fillers, 6),
}

PLANTED = [
    # fillers may be keys of the row
    ("mqar(symbols=12, pairs=2, random_non_queries=True)", "mqar:MQAR._fillers",
     "if self.as_released", "if True", "oracle"),
]  # fmt: skip
