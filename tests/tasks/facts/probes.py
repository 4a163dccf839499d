"""Probes of index, distance, order and counting."""

from itertools import permutations, product

from tests.tasks.law import even, strings, words

a, b, c, M = 0, 1, 2, 3


def token_at_index(indices):
    return even((*x, 2 + k) for x in words(2, 4) for k in range(indices))


def index_of_token(indices):
    return even((*x[:j], 2, *x[j:]) for x in words(2, 3) for j in range(indices))


def pointer_back(reach):
    return even((*x, 2 + k - 1) for x in words(2, 3) for k in range(1, reach + 1))


def distance(reach):
    law = {}
    for d in range(1, reach + 1):
        for i in range(4 - d):
            for noise in words(2, 2):
                rest = iter(noise)
                x = tuple(2 if at in (i, i + d) else next(rest) for at in range(4))
                law[x] = 1 / (reach * (4 - d) * 4)
    return law


def before(n):
    return even(
        tuple(2 if at == a else 3 if at == b else next(rest) for at in range(n))
        for a, b in permutations(range(n), 2)
        for noise in words(2, n - 2)
        for rest in [iter(noise)]
    )


def same_order(symbols):
    law = {}
    allowed = [x for x in words(symbols, 3) if len(set(x)) > 1]
    for x in allowed:
        law[(*x, symbols, *x)] = law.get((*x, symbols, *x), 0) + 1 / (2 * len(allowed))
        for i in range(3):
            others = [j for j in range(3) if x[j] != x[i]]
            for j in others:
                y = list(x)
                y[i], y[j] = y[j], y[i]
                prompt = (*x, symbols, *y)
                law[prompt] = law.get(prompt, 0) + 1 / (2 * len(allowed) * 3 * len(others))
    return law


def count_symbol(most):
    law = {}
    for c in range(most + 1):
        found = [x for x in words(3, 3) if x.count(2) == c]
        law |= {x: 1 / ((most + 1) * len(found)) for x in found}
    return law


def fill_blank(apart):
    """Which of five places are hidden, blanks at least `apart` places from one another, each wish granted with 1/4."""
    law = {}
    for wishes in product((False, True), repeat=5):
        p, hidden, last = 1.0, [], -apart
        for at, wish in enumerate(wishes):
            p *= 0.25 if wish else 0.75
            hidden.append(wish and at - last >= apart)
            last = at if hidden[-1] else last
        law[tuple(hidden)] = law.get(tuple(hidden), 0) + p
    return law


LAWS = {
    "token_at_index(indices=2, symbols=2)": (4, token_at_index, 2),
    "index_of_token(indices=3, symbols=2)": (4, index_of_token, 3),
    "token_k_back(symbols=3)": (4, strings(3), 4),
    "pointer_back(reach=2, symbols=2)": (3, pointer_back, 2),
    "distance(reach=2, symbols=2)": (4, distance, 2),
    "before(symbols=2)": (4, before, 4),
    "same_order(symbols=2)": (3, same_order, 2),
    "count_symbol(most=2, symbols=2)": (3, count_symbol, 2),
    "fill_blank(hide=0.25)": (5, fill_blank, 3),
}

PLANTED = [
    ("token_at_index", "index:TokenAtIndex.make", "pick(x, k)", "pick(x, k + 1)", "oracle"),
    ("token_at_index(indices=2, symbols=2)", "index:TokenAtIndex.make", "indices - 1", "indices - 2", "law"),
    ("index_of_token", "index:IndexOfToken.make", "x, n, j, {", "x, n, j + 1, {", "oracle"),
    ("index_of_token(indices=3, symbols=2)", "index:IndexOfToken.make", "indices - 1", "indices", "law"),
    ("token_k_back", "offset:TokenKBack.make", "gather(x, i - self.k)", "gather(x, i - self.k + 1)", "oracle"),
    ("token_k_back", "offset:TokenKBack.make", "i >= self.k", "i > self.k", "oracle"),
    ("pointer_back", "offset:PointerBack.make", "pick(x, n - k)", "pick(x, n - k - 1)", "oracle"),
    ("pointer_back(reach=2, symbols=2)", "offset:PointerBack.make", "between(place, 1,", "between(place, 0,", "law"),
    ("distance", "offset:Distance.make", "x, n, d - 1,", "x, n, d,", "oracle"),
    ("distance(reach=2, symbols=2)", "offset:Distance.make", "n - 1 - d)", "n - 2 - d)", "law"),
    ("before", "order:Before.make", "(a < b)", "(b < a)", "oracle"),
    ("before(symbols=2)", "order:Before.make",
     "distinct_positions(place, n, 2, n_max).T", "jnp.sort(distinct_positions(place, n, 2, n_max)).T", "law"),
    ("same_order", "order:SameOrder.make", "same[:, None], x, swapped", "same[:, None], swapped, x", "oracle"),
    # half an exchange is another bag of tokens, which tells the answer without order
    ("same_order(symbols=2)", "order:SameOrder.make",
     "put(put(x, i, pick(x, j)), j, pick(x, i))", "put(x, i, pick(x, j))", "law"),
    ("count_symbol", "counting:CountSymbol.make", "< count[:, None]", "<= count[:, None]", "oracle"),
    ("fill_blank", "blanks:_powers", "2 * rows[-1] + 3 * rows[-2]", "3 * rows[-1] + 2 * rows[-2]", "oracle"),
]  # fmt: skip
