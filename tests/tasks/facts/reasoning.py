"""Sums, parity, polynomials, chains of signs."""

from itertools import permutations, product

from tests.tasks.law import even, words

VARIED = ["polynomial"]


def summands(modulus):
    return even((4 + 2, *(1 + d for d in x), 4 + 1) for x in words(modulus - 1, 3))


def bits(many):
    return even((6, *x, 5) for x in words(many, 5))


def one_term(powers):
    """x, a factor and a power."""
    number = lambda c: (10, -c) if c < 0 else (c,)  # noqa: E731
    return even(
        (19, 14, 15, *number(x), 16, *number(c), 11, 14, 12, d, 18)
        for x, c, d in product(range(-2, 3), range(-3, 4), range(powers))
    )


def clauses(letters, signs):
    """In the order of the chain; ids are those of four letters."""
    before = (7, *letters[:-1])  # 1 stands before the first
    return [(v, 4, 5 + s, u, 8) for v, s, u in zip(letters, signs, before, strict=True)]


def chains(queries):
    """Four letters in any order, the last few asked for."""
    return even(
        (11, *sum(clauses(v, signs), ()), asked, 10)
        for v in permutations(range(4))
        for signs in words(2, 4)
        for asked in v[4 - queries :]
    )


def shuffled(signs):
    """Two of four letters, the second asked for, their clauses in either order."""
    return even(
        (11, *sum(order, ()), v[1], 10)
        for v in permutations(range(4), 2)
        for s in words(signs, 2)
        for order in permutations(clauses(v, s))
    )


def polynomials(n):
    """How likely so many signs, which make the text longer, go with a rest."""
    law = {}
    for x in range(-2, 3):
        found = {(int(x < 0), 0): 1 / 5}
        for _ in range(n):
            before, found = found, {}
            for (signs, rest), p in before.items():
                for c, d in product(range(-3, 4), range(4)):
                    key = signs + (c < 0), (rest + c * x**d) % 10
                    found[key] = found.get(key, 0) + p / 28
        law = {key: law.get(key, 0) + found.get(key, 0) for key in law | found}
    return law


LAWS = {
    "sum_mod(modulus=4)": (3, summands, 4),
    "parity_lm": (5, bits, 2),
    "polynomial": (1, one_term, 4),
    "lego(letters=4)": (4, chains, 2),
    "lego(letters=4, permute=True)": (2, shuffled, 2),
}

PLANTED = [
    ("sum_mod", "reasoning:_rest", "total(x)", "(total(x) + 1)", "oracle"),
    ("parity_lm", "reasoning:_rest", "% modulus", "% (modulus + 1) % 2", "oracle"),
    ("polynomial", "reasoning:_rest", "total(x)", "abs(total(x))", "oracle"),
    ("lego", "reasoning:_turns", "pick(jnp.cumsum(minus, axis=1, dtype=INT), j)", "total(minus)", "oracle"),
    ("lego(permute=True)", "reasoning:_turns", "jnp.cumsum(minus, axis=1, dtype=INT)", "minus", "oracle"),
]  # fmt: skip
