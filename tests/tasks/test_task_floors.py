"""The floors are what can be computed by hand, and they see a target that stands one place off."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab import tasks
from posenc.lab.tasks.examples import examples
from posenc.lab.tasks.floors import floors, floors_by_metric
from posenc.lab.tasks.task import TASKS
from tests.night import by_day
from tests.tasks.facts import BAGS, FLOORS, LAWS
from tests.tasks.facts.strings import sorted_by_position
from tests.tasks.task_checks import by_hand, every_text, floor_sizes

ROWS = 4096
CUED = [text for text in LAWS if tasks.parse(text).cue is not None and tasks.parse(text).layout.name != "LM"]


MORE = [text for text in every_text() if text.startswith(("copy(", "fill_blank(", "flip_flop(noisy"))]


@pytest.mark.parametrize("blind", by_day(tasks.names() + MORE, list(FLOORS)[::2]))
def test_floors_are_those_computed_by_hand(blind):
    task = tasks.parse(blind)
    if task.metric == "gain":
        assert floors(task, [8], rows=8) == {8: {"unigram": 0.0}}, "no guess gains anything"
        return
    for n, found in floors(task, floor_sizes(task), rows=ROWS).items():
        prior, position = by_hand(task, n)
        bag = {"bag": BAGS[task.name](task, n)} if task.cue is not None else {}
        for name, expected in ({"uniform": 1 / task.choices, "prior": prior} | bag | {"position": position}).items():
            if expected is None or (name == "uniform" and task.metric == "exact"):
                continue
            if task.metric == "error":
                expected = 1 - expected
            spread = 4 * math.sqrt(expected * (1 - expected) / ROWS) + 1e-6
            assert abs(found[name] - expected) <= spread, (n, name, found[name], expected)
        assert list(found) == ["uniform", "prior", *bag, "position"]
        assert all(type(v) is float for v in found.values())


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


def test_a_bag_of_tokens_explains_what_was_published_without_positions():
    """Ruoss et al. (2023), table 1, column "None": 52.8 for reverse, duplicate and odds first, 23.7 for bucket sort."""
    sizes = range(41, 501)
    binary, five = (np.mean([largest_count(symbols, n) for n in sizes]) for symbols in (2, 5))
    assert [round(100 * share, 1) for share in (binary, five)] == [52.8, 23.7]
    task = tasks.parse("reverse_string")
    found = floors(task, [41, 500], rows=ROWS)
    for n in (41, 500):
        assert abs(found[n]["bag"] - largest_count(2, n)) < 0.003


def largest_count(symbols, n):
    """E[largest count] / n of n uniform symbols, by chance."""
    counts = np.random.default_rng(n).multinomial(n, np.full(symbols, 1 / symbols), size=2000)
    return counts.max(axis=1).mean() / n


def by_brute_force(task, law):
    """The share of answer tokens that equal the most frequent token of the cue, from every prompt and its chance."""
    right = whole = 0.0
    for prompt, chance in law.items():
        read = [token for token in prompt if token in task.cue]
        guess = min(set(read), key=lambda token: (-read.count(token), token))
        answers = task.answer(list(prompt))
        right += chance * sum(answer + task.cue.start == guess for answer in answers)
        whole += chance * len(answers)
    return right / whole


@pytest.mark.parametrize("cued", CUED)
def test_the_bag_is_what_every_prompt_gives(cued):
    n, law, bound = LAWS[cued]
    task = tasks.parse(cued)
    found = floors(task, [n], rows=ROWS)[n]["bag"]
    expected = by_brute_force(task, law(bound))
    assert abs(found - expected) <= 4 * math.sqrt(expected * (1 - expected) / ROWS) + 1e-6


@pytest.mark.parametrize("metric", ["last", "beyond"])
def test_floors_of_another_metric_are_those_of_its_places(metric):
    task, length, n = tasks.parse("bucket_sort"), 10, 14
    every = floors_by_metric(task, [10, n], length, rows=ROWS)
    drawn = jax.device_get(examples(task, 4 * ROWS, n, jax.random.key(7), jnp.int32(n)))
    places = [2 * n - 1] if metric == "last" else range(task.tokens(length), 2 * n)
    by_place = [np.bincount(drawn.targets[drawn.score[:, i], i], minlength=5) / (4 * ROWS) for i in places]
    expected = {"uniform": 0.2, "prior": np.mean(by_place, 0).max(), "position": np.mean([p.max() for p in by_place])}
    for name, value in expected.items():
        assert abs(every[metric][n][name] - value) < 0.02, (name, every[metric][n][name], value)
    assert every["beyond"][10] == every["token"][10] and every["token"] == floors(task, [10, n], rows=ROWS)


@pytest.mark.parametrize("written", ["copy(symbols=16)", "reverse(symbols=16)"])
def test_floors_of_the_tokens_of_whole_answers_have_the_end_for_nothing(written):
    task, n = tasks.parse(written), 12
    every = floors_by_metric(task, [n], 8, rows=ROWS)
    expected = dict.fromkeys(("uniform", "prior", "position"), (n / 16 + 1) / (n + 1))
    assert every["accuracy"][n] == pytest.approx(expected, abs=0.01)
    assert every["exact"] == floors(task, [n], rows=ROWS) and max(every["exact"][n].values()) < 0.01


def test_floors_are_one_program(monkeypatch):
    cls, traced = TASKS.find("reverse_string"), []
    make = cls.make
    monkeypatch.setattr(cls, "make", functools.wraps(make)(lambda *a: traced.append(1) or make(*a)))
    floors(tasks.parse("reverse_string"), [3, 4, 5, 6], rows=16)
    assert len(traced) == 1


def test_floors_refuse_what_is_no_size():
    with pytest.raises(ValueError, match="size 2"):
        floors(tasks.parse("token_k_back(k=3)"), [2, 8])
    with pytest.raises(ValueError, match="empty"):
        floors(tasks.parse("token_k_back(k=3)"), [])
