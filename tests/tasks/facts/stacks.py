"""Stacks."""

from itertools import product

import jax.numpy as jnp
import numpy as np

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


def depths(n):
    """How deep the stack is at the end: a walk of two steps up to one down that stays at 0 where it cannot fall."""
    total = np.zeros(n + 2)
    for height in range(1, max(n, 2)):
        p = np.zeros(n + 2)
        p[height] = 1.0
        for _ in range(n - height):
            p = np.append(p[1:], 0.0) / 3 + np.insert(p[:-1], 0, 0.0) * 2 / 3 + np.eye(n + 2)[0] * p[0] / 3
        total += p / max(n - 1, 1)
    return total


def known(n):
    """A symbol is 0 or 1 as likely; at slot j the answer goes on if the stack is deeper than j, and ends if as deep."""
    p = depths(n)
    deeper = 1 - np.cumsum(p)
    slots = 1 + deeper.sum()
    return max(deeper.sum() / 2, 1) / slots, np.maximum(deeper / 2, p).sum() / slots


EXAMPLES = [
    ("stack_manipulation", [0, 1, 1, 0, 4, 2, 2], [1, 1, 0, 2]),
    ("stack_manipulation", [1, 1, 0, 2, 2, 2], [2]),
    ("stack_manipulation", [1, 2, 2, 3], [0, 2]),
    ("stack_manipulation", [1], [1, 2]),
]

LAWS = {"stack_manipulation": (4, programs(4), 3)}
FLOORS = {"stack_manipulation": lambda t, n: known(n)}
FLOOR_SIZES = {"stack_manipulation": [1, 2, 40]}

ENDED = stacks.ended


def below_nothing(told):
    """A pop of nothing is remembered: the next push only makes up for it."""
    return jnp.cumsum(jnp.where(told == stacks.POP, -1, 1), axis=1)


def end_not_scored(*given):
    batch = ENDED(*given)
    return batch._replace(score=batch.score & (batch.targets != 2))


def filler_scored(*given):
    batch = ENDED(*given)
    return batch._replace(score=batch.weight > 0)


BROKEN = [
    ("stack_manipulation", 8, "stacks", "_depth", below_nothing),
    ("stack_manipulation", 8, "stacks", "ended", end_not_scored),
    ("stack_manipulation", 8, "stacks", "ended", filler_scored),
]
