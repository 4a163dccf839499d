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


LAWS = {
    "s2s_copy(symbols=5)": (3, source, 5),
    "s2s_reverse(symbols=5)": (3, source, 5),
    "toy_translation(words=2)": (6, sentences, 3),
}


def symbols(task, n):
    """Any one answer, also that of one symbol throughout, is one of all that there are."""
    return task.symbols**-n, task.symbols**-n


def late(x, where):
    return draw.gather(x, where + 1)


def cut_short(task, n, length, source, s, answer, m):
    return layout.translated(task, n, length, source, s, answer, m - 1)


BROKEN = [
    ("s2s_reverse", 6, "seq2seq", "gather", late),
    ("s2s_copy", 6, "seq2seq", "translated", cut_short),
    ("toy_translation", 6, "seq2seq", "gather", late),
]
