"""Sorted lists."""

from tests.tasks.law import even, words

VARIED = ["sort_multi"]


def symbols(many):
    return even((5 + 2, *x, 5 + 1) for x in words(many, 2))


def numbers(largest):
    """Two numbers from 8 on, in digits."""
    digits = lambda x: tuple(map(int, str(x)))  # noqa: E731
    return even((13, *digits(8 + a), 10, *digits(8 + b), 12) for a, b in words(largest - 7, 2))


LAWS = {"sort_single(symbols=5)": (2, symbols, 5), "sort_multi(smallest=8, largest=12)": (2, numbers, 12)}

PLANTED = [
    ("sort_single", "sorting:_ascending", "jnp.sort(jnp.where(inside, x,", "-jnp.sort(jnp.where(inside, -x,", "oracle"),
    ("sort_multi", "sorting:_ascending", "jnp.sort(jnp.where(inside, x,", "-jnp.sort(jnp.where(inside, -x,", "oracle"),
]  # fmt: skip
