"""Stacks."""

from itertools import product

import jax.numpy as jnp

from posenc.lab.tasks import stacks
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


def below_nothing(told):
    """A pop of nothing is remembered: the next push only makes up for it."""
    return jnp.cumsum(jnp.where(told == stacks.POP, -1, 1), axis=1)


BROKEN = [
    ("stack_manipulation", 8, "stacks", "_depth", below_nothing),
]
