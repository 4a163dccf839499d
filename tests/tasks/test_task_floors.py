"""The floors are what can be computed by hand, and they see a target that stands one place off."""

import functools
import math

import numpy as np
import pytest

from posenc.lab import tasks
from posenc.lab.tasks.examples import examples
from posenc.lab.tasks.floors import floors
from posenc.lab.tasks.task import TASKS
from tests.night import by_day
from tests.tasks.facts import FLOORS
from tests.tasks.facts.strings import sorted_by_position
from tests.tasks.task_checks import by_hand, every_text, floor_sizes

ROWS = 4096


MORE = [text for text in every_text() if text.startswith(("copy(", "fill_blank(", "flip_flop(noisy"))]


@pytest.mark.parametrize("blind", by_day(tasks.names() + MORE, list(FLOORS)[::2]))
def test_floors_are_those_computed_by_hand(blind):
    task = tasks.parse(blind)
    for n, found in floors(task, floor_sizes(task), rows=ROWS).items():
        prior, position = by_hand(task, n)
        for name, expected in {"uniform": 1 / task.choices, "prior": prior, "position": position}.items():
            if expected is None or (name == "uniform" and task.metric == "exact"):
                continue
            if task.metric == "error":
                expected = 1 - expected
            spread = 4 * math.sqrt(expected * (1 - expected) / ROWS) + 1e-6
            assert abs(found[name] - expected) <= spread, (n, name, found[name], expected)
        assert list(found) == ["uniform", "prior", "position"] and all(type(v) is float for v in found.values())


def test_the_uniform_guess_of_an_exact_match_is_a_product():
    found = floors(tasks.parse("copy(symbols=3)"), [1, 4], rows=8)
    np.testing.assert_allclose([found[n]["uniform"] for n in (1, 4)], [1 / 3, 1 / 81], rtol=1e-6)


def test_position_alone_sorts_most_of_a_long_string():
    exact = [sorted_by_position(n) for n in (40, 100, 500)]
    np.testing.assert_allclose(exact, [0.7778, 0.8585, 0.9365], atol=1e-4)


def test_a_target_one_place_off_raises_the_floor(monkeypatch):
    cls = TASKS.find("bucket_sort")
    honest = floors(tasks.parse("bucket_sort"), [10], rows=ROWS)[10]
    make = cls.make

    def shifted(self, key, n, n_max):
        batch = make(self, key, n, n_max)
        return batch._replace(score=batch.valid, targets=batch.targets)  # the input is scored as well, as class 0

    monkeypatch.setattr(cls, "make", shifted)
    examples.clear_cache()  # the task is the same, so its program would be
    planted = floors(tasks.parse("bucket_sort"), [10], rows=ROWS)[10]
    examples.clear_cache()
    assert planted["position"] > honest["position"] + 0.1 and planted["prior"] > honest["prior"] + 0.1


def test_floors_are_one_program(monkeypatch):
    cls, traced = TASKS.find("reverse_string"), []
    make = cls.make
    monkeypatch.setattr(cls, "make", functools.wraps(make)(lambda *a: traced.append(1) or make(*a)))
    floors(tasks.parse("reverse_string"), [3, 4, 5, 6], rows=16)
    assert len(traced) == 1


def test_floors_refuse_what_is_no_size():
    with pytest.raises(ValueError, match="has no size 2"):
        floors(tasks.parse("token_k_back(k=3)"), [2, 8])
    with pytest.raises(ValueError, match="sizes for the floors of .* is empty; give at least one size"):
        floors(tasks.parse("token_k_back(k=3)"), [])
