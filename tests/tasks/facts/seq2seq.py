"""From a source to its copy, its reverse, and a translation of another word order."""

from posenc.lab.tasks import draw, layout
from tests.tasks.law import even, words


def source(symbols):
    return even(words(symbols, 3))


def sentences(most):
    """Six words of two kinds each: at most so many adjectives before the subject's noun, the rest before the other."""
    return even(
        (*x[:k], 2 + x[k], 4 + x[k + 1], *x[k + 2 : -1], 2 + x[-1]) for k in range(most + 1) for x in words(2, 6)
    )


EXAMPLES = [
    ("s2s_copy", [7, 7, 31], [7, 7, 31, 34]),
    ("s2s_reverse", [7, 8, 31], [31, 8, 7, 34]),
    # adjectives 0-9, nouns 10-19, verbs 20-29: "quick brown fox chases lazy dog" -> FOX QUICK BROWN DOG LAZY CHASES
    ("toy_translation", [1, 2, 13, 24, 5, 16], [43, 31, 32, 46, 35, 54, 62]),
    ("toy_translation", [10, 20, 10], [40, 40, 50, 62]),
]

LAWS = {
    "s2s_copy(symbols=5)": (3, source, 5),
    "s2s_reverse(symbols=5)": (3, source, 5),
    "toy_translation(words=2)": (6, sentences, 3),
}


def symbols(task, n):
    """Any one answer, also that of one symbol throughout, is one of all that there are."""
    return task.symbols**-n, task.symbols**-n


FLOORS = {"s2s_copy": symbols, "s2s_reverse": symbols, "toy_translation": lambda t, n: (0.0, t.words**-n / (n - 2))}


def late(x, where):
    return draw.gather(x, where + 1)


def cut_short(task, n, length, source, s, answer, m):
    return layout.translated(task, n, length, source, s, answer, m - 1)


BROKEN = [
    ("s2s_reverse", 6, "seq2seq", "gather", late),
    ("s2s_copy", 6, "seq2seq", "translated", cut_short),
    ("toy_translation", 6, "seq2seq", "gather", late),
]
