"""The floors `bag` that the claims of ruoss.py quote, against the exact law; no other task of that table has one."""

import math

import numpy as np
import pytest

from posenc.lab import tasks
from posenc.lab.spec.experiment_file import executed
from posenc.lab.tasks.floors import floors
from tests.test_experiments import FOLDER


def most_frequent(symbols, sizes):
    """Return the expected share of the most frequent symbol of uniform random strings, the mean over sizes.

    Counts of symbols are independent Poisson counts, given their sum: P(no count is above m) is a power of one series.
    """
    last = max(sizes)
    counts, rate = np.arange(last + 1), last / symbols
    factorials = np.array([math.lgamma(k + 1) for k in counts])
    of_one, of_all = (np.exp(counts * math.log(r) - r - factorials) for r in (rate, last))
    expected = np.zeros(last + 1)
    for most in range(last):
        series = below = of_one * (counts <= most)
        for _ in range(symbols - 1):
            series = np.convolve(series, below)[: last + 1]
        expected += 1 - series / of_all
    return float(np.mean([expected[n] / n for n in sizes]))


@pytest.mark.parametrize(("symbols", "n", "share"), [(1, 4, 1), (2, 1, 1), (2, 2, 3 / 4), (3, 2, 2 / 3)])
def test_short_strings_are_counted_by_hand(symbols, n, share):
    assert most_frequent(symbols, [n]) == pytest.approx(share)


@pytest.mark.parametrize("name", ["reverse_string", "duplicate_string", "odds_first", "bucket_sort"])
def test_it_is_the_floor_that_is_counted_on_examples(name):
    """Of 8,192 strings; a token of a string is no case of its own, so the error is that of whole strings."""
    symbols = len(tasks.parse(name).cue)
    for n, known in floors(tasks.parse(name), [8, 20]).items():
        assert known["bag"] == pytest.approx(most_frequent(symbols, [n]), abs=0.008)


def test_the_whole_table_names_the_tasks_whose_answers_hold_the_symbols_of_the_prompt():
    """Every string task of the table with a cue, and no other; the column without encoding is the bag."""
    ruoss = executed(FOLDER / "ruoss.py")
    cued = {name: len(tasks.parse(name).cue) for name in ruoss.TABLE if tasks.parse(name).cue is not None}
    assert {"reverse_string": 2, "duplicate_string": 2, "odds_first": 2, "bucket_sort": 5} == cued
    exact = {n: most_frequent(n, range(41, 501)) for n in {*cued.values()}}
    for name, n in cued.items():
        assert exact[n] == pytest.approx(ruoss.BAGS[name], abs=5e-7)
        assert ruoss.TABLE[name][0] == round(100 * ruoss.BAGS[name], 1), name
