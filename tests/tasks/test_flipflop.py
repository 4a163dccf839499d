"""The sets that Liu et al. (2023) evaluate on: how many bits they ask for, and that their instructions are as stated.

Their released data (`synthseq/flipflop`, as its card describes them): sequences of 256 instructions, 16,000 with 80 %
to be ignored, 4,000 with 10 % and 160,000 with 98 %. Every number below is a count of independent draws, and lies in
the interval that holds all but one in 10⁶ of such counts.
"""

import functools
from collections import Counter

import jax
import numpy as np
import pytest
from scipy.stats import binom

from posenc.lab import tasks
from posenc.lab.tasks.flipflop import IGNORE, READ, WRITE
from tests.night import by_day
from tests.tasks.task_checks import QUICK

RELEASED = {0.8: 16_000, 0.1: 4_000, 0.98: 160_000}
PAIRS, ROWS = 256, 2000
FEW = 200


def blocks(task, rows):
    """Batches of `ROWS` sequences, or fewer, until there are so many."""
    sample = functools.partial(task.sample, n=2 * PAIRS, batch=min(rows, ROWS), n_max=2 * PAIRS)
    sample = jax.jit(sample, compiler_options=QUICK)
    return (jax.device_get(sample(jax.random.key(seed))) for seed in range(rows // min(rows, ROWS)))


def told(batch):
    """Instructions and bits of sequences that are as defined; and the place of the last write up to each pair."""
    what, bit = batch.tokens[:, ::2], batch.tokens[:, 1::2]
    assert what.shape[1] == PAIRS and (what[:, 0] == WRITE).all() and (what[:, -1] == READ).all()
    assert np.isin(what, (WRITE, READ, IGNORE)).all() and np.isin(bit, (0, 1)).all()
    last = np.maximum.accumulate(np.where(what == WRITE, np.arange(PAIRS)[None, :], 0), axis=1)
    held = np.take_along_axis(bit, last, axis=1)[what == READ]
    np.testing.assert_array_equal(bit[what == READ], held)
    np.testing.assert_array_equal(batch.score[:, ::2], what == READ)
    np.testing.assert_array_equal(batch.targets[batch.score], held)
    assert not batch.score[:, 1::2].any()
    return what, bit, last


def found_in(task, rows):
    """name: (how often it was seen, of how many, how likely each is)."""
    seen, rare, middle = Counter(), (1 - task.p) / 2, (PAIRS - 2) * rows
    far = round(1 / rare)
    for what, bit, last in map(told, blocks(task, rows)):
        seen["ignored"] += (what[:, 1:-1] == IGNORE).sum()
        seen["wrote"] += (what[:, 1:-1] == WRITE).sum()
        seen["read"] += (what[:, 1:-1] == READ).sum()
        seen["free"] += (what != READ).sum()
        seen["ones"] += bit[what != READ].sum()
        seen["late"] += (last[:, -1] < PAIRS - far).sum()
    return {
        "ignored": (seen["ignored"], middle, task.p),
        "wrote": (seen["wrote"], middle, rare),
        "read": (seen["read"], middle, rare),
        "a bit that is free is 1": (seen["ones"], seen["free"], 0.5),
        "the last read is far from its write": (seen["late"], rows, (1 - rare) ** (far - 1)),
    }


def inside(count, whole, p):
    low, high = binom.interval(1 - 1e-6, whole, p)
    return low <= count <= high


SETS = [(p, rows) for p, whole in RELEASED.items() for rows in (FEW, whole)]


@pytest.mark.parametrize(("p", "rows"), by_day(SETS, SETS[2::2]))
def test_a_published_set_has_the_instructions_that_are_stated_of_it(p, rows):
    found = found_in(tasks.parse(f"flip_flop(p={p})"), rows)
    for what, (count, whole, chance) in found.items():
        assert inside(count, whole, chance), (what, count / whole, chance)
    ignored, whole, _ = found["ignored"]
    assert not inside(ignored, whole, p - 0.015) and not inside(ignored, whole, p + 0.015)
    if rows > FEW:
        assert found["read"][0] + rows > 3e5, "too few bits are asked for to see errors of one in 10⁵"
