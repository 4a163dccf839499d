"""From a source to its copy, its reverse, and a translation of another word order."""

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

PLANTED = [
    ("s2s_reverse", "seq2seq:S2SReverse.make", "n[:, None] - 1 -", "n[:, None] -", "oracle"),
    ("s2s_copy", "seq2seq:S2SCopy.make", "x, n, x, n)", "x, n, x, n - 1)", "oracle"),
    ("toy_translation", "seq2seq:ToyTranslation.make", "gather(x, where)", "gather(x, where + 1)", "oracle"),
]  # fmt: skip
