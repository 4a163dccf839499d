"""What the shared checks cannot see: released fillers, keys that come again, noise, depth, counters and their room."""

import math

import numpy as np
import pytest
from scipy.stats import chisquare

from posenc.lab import tasks
from tests.tasks.task_checks import drawn


@pytest.mark.ci
def test_released_fillers_may_be_a_key_of_the_row_and_are_then_not_scored():
    task = tasks.parse("mqar(symbols=64, random_non_queries=True, as_released=True)")
    batch = drawn(task, 40, rows=2000)
    told = batch.tokens[:, :8:2]
    filler = ~batch.score & (np.arange(40) >= 8)
    hit = (batch.tokens[:, :, None] == told[:, None, :]).any(axis=2) & filler
    assert (batch.score.sum(axis=1) == 4).all()
    np.testing.assert_allclose(hit.sum() / filler.sum(), 4 / 64, atol=4 * math.sqrt(4 / 64 / filler.sum()))
    honest = drawn(tasks.parse("mqar(symbols=64, random_non_queries=True)"), 40, rows=2000)
    assert not ((honest.tokens[:, :, None] == honest.tokens[:, None, :8:2]).any(axis=2) & ~honest.score)[:, 8:].any()
    np.testing.assert_array_equal(honest.tokens[:, :8], batch.tokens[:, :8])
    np.testing.assert_array_equal(honest.targets, batch.targets)


@pytest.mark.ci
@pytest.mark.parametrize("shown", ["needle(needles=2)", "passkey"])
def test_every_tenth_of_the_haystack_is_as_likely(shown):
    task = tasks.parse(shown)
    blocks = 100
    n = blocks + (12 if shown.startswith("needle") else 5)
    depth = np.bincount(drawn(task, n, rows=20_000).strata["depth"], minlength=10)
    assert len(depth) == 10 and chisquare(depth).pvalue > 1e-3


def test_a_trigger_is_as_far_back_as_its_stratum_says():
    batch = drawn(tasks.parse("induction"), 30, rows=200)
    for row, distance in zip(batch.tokens.tolist(), batch.strata["distance"], strict=True):
        assert [i for i, token in enumerate(row) if token == 15] == [29 - distance, 29]


@pytest.mark.parametrize("shown", ["counting_cope", "counting_cope(variables=5, passes=2)"])
@pytest.mark.parametrize("n", [1, 2, 10, 40, 512])
def test_hardly_any_program_needs_more_room_than_it_has(shown, n):
    """A statement's law lies between that where all may be incremented and that where none may: take the worse."""
    task = tasks.parse(shown)
    room = task._room(n)
    ends = [np.array([task.passes, increments, 0, 1]) / (task.passes + increments + 1) for increments in (0, 7)]
    beyond = np.zeros(room + 4)  # how often what is left will not fit, by the room that was used
    beyond[room + 1 :] = 1
    for _ in range(n):
        ahead = np.stack([beyond[d : d + room + 1] for d in range(4)])
        beyond[: room + 1] = np.max([end @ ahead for end in ends], axis=0)
    assert beyond[0] < 1e-9
    assert task.tokens(n) == n + task._room(n) + 6
