"""Copies, forwards and backwards."""

from itertools import permutations

from tests.tasks.law import even, words


def copy(symbols):
    return even((symbols + 2, *x, symbols + 1) for x in words(symbols, 3))


def hinted(hints):
    """A run of markers from anywhere: three of so many, each before a symbol of two."""
    sep, bos = 2 + 5 + 1, 2 + 5 + 2
    return even((bos, 2 + s, x[0], 3 + s, x[1], 4 + s, x[2], sep) for s in range(hints - 2) for x in words(2, 3))


def unlike(symbols):
    return even((symbols + 2, *x, symbols + 1) for x in permutations(range(symbols), 3))


def substitute(symbols):
    to, sep, bos = symbols, symbols + 2, symbols + 3
    return even((bos, a, b, to, a, a, sep) for a, b in permutations(range(symbols), 2))


LAWS = {
    "copy(symbols=5)": (3, copy, 5),
    "copy(variant='substitute', symbols=5)": (2, substitute, 5),
    "copy(hints=5, symbols=2)": (3, hinted, 5),
    "copy(distinct=True, symbols=5)": (3, unlike, 5),
    "reverse(symbols=5)": (3, copy, 5),
}

PLANTED = [
    ("copy", "layout:prompted", "(i < eos)", "(i < eos - 1)", "oracle"),  # EOS is not scored
    ("copy", "layout:prompted", "i <= sep, strata", "i <= sep + 1, strata", "leak"),
    ("copy(variant='random_twice')", "copying:Copy._text", "j - middle - 1", "j - middle", "oracle"),
    ("copy(variant='repeat_twice')", "copying:Copy._answer", "2 * n}", "2 * n + 1}", "oracle"),
    ("copy(distinct=True, symbols=5)", "copying:Copy._text", "if self.distinct", "if not self.distinct", "law"),
    ("copy(variant='substitute', symbols=5)", "copying:Copy._text", "(a + 1 + ", "(a + ", "law"),  # by itself, at times
    ("reverse(variant='then_copy')", "copying:Reverse.make", "gather(x, where)", "gather(x, where + 1)", "oracle"),
]  # fmt: skip
