"""Stacks."""

from itertools import product

from tests.tasks.law import words


def programs(n):
    def law(highest):
        counted = {}
        for height in range(1, highest + 1):
            each = [s + a for s, a in product(words(2, height), product((2, 3, 4), repeat=n - height))]
            counted |= {text: 1 / highest / len(each) for text in each}
        return counted

    return law


LAWS = {"stack_manipulation": (4, programs(4), 3)}

PLANTED = [
    # a pop of nothing is remembered
    ("stack_manipulation", "stacks:_depth", " - jnp.minimum(jax.lax.cummin(sums, axis=1), 0)", "", "oracle"),
]  # fmt: skip
