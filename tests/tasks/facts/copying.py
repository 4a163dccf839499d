"""Copies, forwards and backwards."""

from itertools import permutations

from posenc.lab.tasks import draw
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


def copied(task, n):
    """One symbol throughout is right where one symbol is all there is; the whole answer, where it is one of few."""
    one = 1 / task.symbols
    if task.hints:
        return 0.0, one**n / (task.hints - n + 1)
    if task.variant == "random_twice":
        return 0.0, one if n == 1 else 0.0
    return (one, one) if n == 1 or task.variant != "random" else (0.0, 0.0)


EXAMPLES = [
    ("copy", [102, 7, 7, 42, 101], [7, 7, 42, 103]),
    ("copy(hints=4, symbols=10)", [16, 11, 7, 12, 2, 15], [11, 7, 12, 2, 17]),
    ("copy(distinct=True)", [102, 7, 9, 42, 101], [7, 9, 42, 103]),
    ("copy(variant='random_twice')", [103, 7, 42, 102], [7, 42, 100, 7, 42, 104]),
    ("copy(variant='repeat')", [102, 9, 9, 9, 101], [9, 9, 9, 103]),
    ("copy(variant='repeat_twice')", [102, 9, 9, 101], [9, 9, 9, 9, 103]),
    ("copy(variant='substitute')", [103, 5, 6, 100, 5, 5, 102], [6, 6, 104]),
    ("reverse", [102, 1, 2, 3, 101], [3, 2, 1, 103]),
    ("reverse(variant='twice')", [103, 1, 2, 3, 102], [3, 2, 1, 100, 3, 2, 1, 104]),
    ("reverse(variant='then_copy')", [103, 1, 2, 3, 102], [3, 2, 1, 100, 1, 2, 3, 104]),
]

LAWS = {
    "copy(symbols=5)": (3, copy, 5),
    "copy(variant='substitute', symbols=5)": (2, substitute, 5),
    "copy(hints=5, symbols=2)": (3, hinted, 5),
    "copy(distinct=True, symbols=5)": (3, unlike, 5),
    "reverse(symbols=5)": (3, copy, 5),
}

FLOORS = {"copy": lambda t, n: copied(t, n), "reverse": lambda t, n: (1 / t.symbols,) * 2 if n == 1 else (0.0, 0.0)}

BROKEN = [
    (f"reverse(variant='{v}')", 6, "copying", "gather", lambda x, where: draw.gather(x, where + 1))
    for v in ("once", "twice", "then_copy")
]

COPY = "posenc.lab.tasks.copying:Copy."

PLANTED = [
    ("copy", "posenc.lab.tasks.layout:prompted", "(i < eos)", "(i < eos - 1)", "oracle"),  # EOS is not scored
    ("copy", "posenc.lab.tasks.layout:prompted", "i <= sep, strata", "i <= sep + 1, strata", "leak"),
    ("copy(variant='random_twice')", COPY + "_text", "j - middle - 1", "j - middle", "oracle"),
    ("copy(variant='repeat_twice')", COPY + "_answer", "2 * n}", "2 * n + 1}", "oracle"),
    ("copy(distinct=True, symbols=5)", COPY + "_text", "if self.distinct", "if not self.distinct", "law"),
    ("copy(variant='substitute', symbols=5)", COPY + "_text", "(a + 1 + ", "(a + ", "law"),  # by itself, at times
]
