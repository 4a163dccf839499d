"""The exact losses of sources are those of a sum over all hidden paths, and what is known of them in the large."""

import itertools
import math

import numpy as np
import pytest

from posenc.lab import tasks
from posenc.lab.tasks.copies import base_law
from posenc.lab.tasks.hidden_markov import emissions
from tests.tasks.task_checks import drawn


def texts(name, n, rows, seed=0):
    batch = drawn(tasks.parse(name), n, rows=rows, seed=seed)
    return np.concatenate([batch.tokens, batch.targets[:, -1:]], axis=1)


def chain_probability(task, text, first):
    """The chance of a text of a hidden Markov chain, wherever it begins: every path of states, one by one."""
    table, states, total = emissions(task.states), range(task.states), 0.0
    for path in itertools.product(states, repeat=len(text)):
        chance = 1 / task.states
        for before, after in itertools.pairwise(path):
            chance *= task.stay * (after == before) + (1 - task.stay) * (after == (before + 1) % task.states)
        total += chance * math.prod(table[state, symbol] for state, symbol in zip(path, text, strict=True))
    return total


def copy_probability(task, text, first):
    """The chance of tokens whose first has the index `first`: every path of "free" (None) and sources, one by one."""
    base, total = base_law(), 0.0
    paths = [((None,), 1.0)]
    for place in range(1, first + len(text)):
        longer = []
        for path, chance in paths:
            ended = 1.0
            if path[-1] is not None:
                longer.append(((*path, path[-1] + 1), chance * (1 - task.end)))
                ended = task.end
            longer.append(((*path, None), chance * ended * (1 - task.start)))
            longer += [((*path, j), chance * ended * task.start / place) for j in range(place)]
        paths = longer
    for path, chance in paths:
        for symbol, source in zip(text, path[first:], strict=True):
            chance *= base[symbol] if source is None or source < first else float(text[source - first] == symbol)
        total += chance
    return total


NONE, REPEATED = np.zeros((0, 6), int), [[0, 1, 0, 1, 0, 1], [3, 3, 3, 3, 3, 3], [9, 2, 4, 9, 2, 4]]


@pytest.mark.parametrize(
    ("source", "probability", "more"),
    [
        ("hidden_markov(states=3)", chain_probability, NONE),
        ("hidden_markov(states=2, stay=0.3)", chain_probability, NONE),
        ("copies", copy_probability, REPEATED),
        ("copies(start=0.7, end=0.4)", copy_probability, REPEATED),
    ],
)
def test_the_exact_loss_is_a_sum_over_all_paths_or_ways_to_copy(source, probability, more):
    task, rows = tasks.parse(source), np.concatenate([texts(source, 5, 4), more])
    for window in (None, 1, 2, 3, 5):
        for row, losses in zip(rows, task.losses(rows, window), strict=True):
            for i, loss in enumerate(losses):
                first = max(0, i + 1 - (window or 9))
                seen = row[first : i + 2]
                expected = probability(task, seen, first) / probability(task, seen[:-1], first)
                assert loss == pytest.approx(-math.log(expected), rel=1e-9)


def test_the_best_loss_is_best_on_average_and_a_window_of_all_loses_nothing():
    for name in ("hidden_markov", "copies"):
        task, rows = tasks.parse(name), texts(name, 48, 200)
        by_window = [task.losses(rows, window).mean() for window in (1, 4, 16, 48)]
        assert by_window == sorted(by_window, reverse=True) and by_window[0] < -np.log(task.unigram[rows]).mean()
        np.testing.assert_allclose(task.losses(rows, 48), task.losses(rows), rtol=1e-9)
        np.testing.assert_allclose(task.losses(rows, 4, [40, 2]), task.losses(rows, 4)[:, [40, 2]], rtol=1e-9)


def test_a_window_or_a_place_that_a_text_has_not_is_refused():
    task, rows = tasks.parse("copies"), texts("copies", 8, 2)
    with pytest.raises(ValueError, match="9 tokens.* 8"):
        task.losses(rows, 9)
    with pytest.raises(ValueError, match="0 tokens"):
        task.losses(rows, 0)
    with pytest.raises(ValueError, match="8 .* 7"):
        task.losses(rows, places=[8])
    with pytest.raises(ValueError, match="'copy'"):
        tasks.parse("copy").losses(rows)


def test_the_table_of_emissions_is_the_setting_s_and_not_the_run_s():
    table = emissions(16)
    np.testing.assert_allclose(table.sum(1), 1)
    assert (table > 0).all() and emissions(16) is table
    np.testing.assert_allclose(table[0, :3], [0.007181, 0.010100, 0.146969], atol=1e-6)
    first, other = (texts("hidden_markov(stay=1.0)", 512, 200, seed) for seed in (0, 1))
    for rows in (first, other):  # each text stays in one state, and the states have the laws of this table
        law = np.bincount(rows.ravel(), minlength=16) / rows.size
        assert np.abs(law - table.mean(0)).max() < 0.02
    assert (first != other).any()
