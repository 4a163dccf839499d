"""Compacting keeps order; the longest text is as long as stated."""

import jax
import numpy as np
import pytest

from posenc.lab import tasks
from posenc.lab.tasks.draw import compact
from tests.tasks.task_checks import drawn


def test_compacting_keeps_what_is_kept_in_order_and_zeros_follow():
    rng = np.random.default_rng(0)
    x, keep = rng.integers(1, 9, (50, 17), np.int32), rng.random((50, 17)) < 0.4
    keep[0], keep[1] = False, True
    for row, kept, found in zip(x, keep, np.asarray(jax.jit(compact)(x, keep)), strict=True):
        assert found.tolist() == row[kept].tolist() + [0] * int((~kept).sum())


LONGEST = [
    ("sort_multi(smallest=5, largest=12)", 3, 500, 13),
    ("polynomial", 2, 500, None),
    ("addition_kazemnejad(shortest=1)", 2, 2000, None),
]


@pytest.mark.parametrize(("longest", "n", "rows", "least"), LONGEST)
def test_the_longest_text_is_as_long_as_stated_and_shorter_ones_occur(longest, n, rows, least):
    task = tasks.parse(longest)
    lengths = drawn(task, n, rows=rows).valid.sum(axis=1)
    assert lengths.max() == task.tokens(n) and lengths.min() < task.tokens(n)
    assert least is None or lengths.min() == least
