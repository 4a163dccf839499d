"""The whole law of each task at a tiny size, enumerated here by hand, against 20,000 prompts.

Each law takes the bound it rests on. The stated bound must not be rejected; one more than stated, the off-by-one that
an inclusive end would plant, must be.
"""

import functools

import numpy as np
import pytest

from posenc.lab import tasks
from tests.night import by_day
from tests.tasks.facts import LAWS
from tests.tasks.law import even, words
from tests.tasks.task_checks import drawn, p_value, rows

ROWS = 20_000


@functools.cache
def prompts(text):
    task, n = tasks.parse(text), LAWS[text][0]
    batch = drawn(task, n, rows=ROWS, seed=11)
    if text.startswith("fill_blank"):
        return list(map(tuple, (batch.tokens == 31).tolist()))
    return [tuple(prompt) for prompt, _ in rows(batch)]


ONE = {tasks.parse(law).name: law for law in reversed(LAWS)}  # the first of each task


@pytest.mark.parametrize("law", by_day(LAWS, ONE.values()))
def test_prompts_follow_the_stated_law_and_not_one_off_by_one(law):
    _, stated, bound = LAWS[law]
    assert p_value(prompts(law), stated(bound)) > 1e-3
    assert p_value(prompts(law), stated(bound + 1)) < 1e-9
    if bound > 2:
        assert p_value(prompts(law), stated(bound - 1)) < 1e-9


@pytest.mark.guard
def test_every_task_has_a_law(name):
    assert any(tasks.parse(law).name == name for law in LAWS)


@pytest.mark.ci
def test_the_numbers_of_fill_blank_start_anywhere():
    batch = drawn(tasks.parse("fill_blank(hide=1e-09)"), 6, rows=ROWS)
    starts = list(map(tuple, batch.tokens[:, :2].tolist()))
    assert p_value(starts, even(words(31, 2))) > 1e-3


def test_a_narrow_window_shows_a_blank_its_two_neighbours_alone():
    batch = drawn(tasks.parse("fill_blank(window=1, hide=0.5)"), 40, rows=64)
    for tokens, score in zip(batch.tokens, batch.score, strict=True):
        for t in np.flatnonzero(score):
            around = [d for d in range(-3, 4) if 0 <= t + d < 40 and tokens[t + d] != 31]
            assert around == [-1, 1]
    assert batch.score.sum() > 64
