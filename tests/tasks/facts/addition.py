"""Addition."""

from itertools import product

from tests.tasks.law import even

E = "addition(format='{}')".format


def one_digit(least):
    return lambda base: even((13, a, 10, b, 12) for a, b in product(range(least, base), repeat=2))


def hinted(hints):
    """Which marker stands before units: with two digits in an answer, the last of them stands before no units."""
    sep, bos = 11 + 5 + 1, 11 + 5 + 2
    return even((bos, 11 + s, a, 10, 11 + s, b, sep) for s in range(hints - 1) for a, b in product(range(10), repeat=2))


def three(base):
    return even((13, a, 10, b, 10, c, 12) for a, b, c in product(range(base), repeat=3))


LAWS = {
    "addition": (1, one_digit(0), 10),
    E("abacus"): (1, one_digit(1), 10),
    "addition(format='zhou2024', hints=5)": (1, hinted, 5),
    "addition_multi": (1, three, 10),
}

VARIED = ["addition"]

PLANTED = [
    ("addition", "addition:_sums",
     "carried(jnp.sum(values, axis=1, dtype=INT), 9 * k)", "jnp.sum(values, axis=1, dtype=INT) % 10", "oracle"),
    ("addition", "digits:carried", "last_true(columns != TEN - 1)", "0 * columns", "oracle"),
    ("addition(format='plain')", "addition:_sums", "backwards=form.result ==", "backwards=form.result !=", "oracle"),
    ("addition(format='abacus')", "addition:_sums", "else written(result)", "else written(result) - 1", "oracle"),
    ("addition_multi", "addition:_sums", "dtype=INT), 9 * k)", "dtype=INT), 18)", "oracle"),
]  # fmt: skip
