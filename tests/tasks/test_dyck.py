"""Words are counted exactly, as deep and as long as they may be."""

import math

import numpy as np
import pytest

from posenc.lab import tasks
from posenc.lab.tasks.dyck import _rises
from tests.tasks.facts.dyck import shapes
from tests.tasks.task_checks import drawn


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_words_that_follow_the_table_are_uniform(depth):
    """The chances along each word multiply to one over the number of words."""
    table, every = _rises(10, depth), shapes(10, depth)
    for shape in every:
        d, chance = 0, 1.0
        for t, way in enumerate(shape):
            up = table[10 - t, d]
            chance *= up if way > 0 else 1 - up
            d += way
        np.testing.assert_allclose(chance * len(every), 1, rtol=1e-12)
    assert len(every) == {3: 34, 5: math.comb(10, 5) // 6}.get(depth, len(every))


def test_a_long_table_stays_exact():
    table = _rises(4096, 10)
    assert np.isfinite(table).all() and table.min() >= 0 and table.max() <= 1
    assert table[1, 1] == 0 and table[2, 0] == 1 and (table[:, 10] == 0).all()


def test_one_class_in_many_is_legal_at_the_full_depth_and_all_tokens_are_learnt():
    batch = drawn(tasks.parse("dyck(full=True, kinds=2, depth=3)"), 20, rows=200)
    level = np.where(batch.tokens < 2, 1, -1).cumsum(axis=1)
    np.testing.assert_array_equal(batch.score[:, :-1], level[:, :-1] == 3)
    np.testing.assert_array_equal(batch.weight[:, :-1], 1)
    assert level.min() >= 0 and (level[:, -1] == 0).all() and set(batch.strata["depth"]) <= {1, 2, 3}
    np.testing.assert_array_equal(batch.strata["depth"], level.max(axis=1))
    np.testing.assert_array_equal(batch.targets[:, :-1], batch.tokens[:, 1:])


@pytest.mark.ci
def test_a_depth_that_no_word_reaches_changes_nothing_and_takes_no_memory():
    every = [drawn(tasks.parse(f"dyck(kinds=2, depth={depth})"), 8, rows=200) for depth in (4, 5, 2**24)]
    for name in ("tokens", "targets", "score"):
        np.testing.assert_array_equal(getattr(every[0], name), getattr(every[1], name))
        np.testing.assert_array_equal(getattr(every[1], name), getattr(every[2], name))
    assert every[0].strata["depth"].max() == 4
