"""The exact floor of the bag, against every string there is, and the floors counted on examples; published floors."""

import itertools
import math
import time
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from posenc.lab import tasks
from posenc.lab.results.at_floor import at_floor
from posenc.lab.results.bag import most_frequent
from posenc.lab.spec.experiment_file import executed
from posenc.lab.tasks.floors import floors
from tests.lab import made
from tests.lab.seen import Order, Published
from tests.test_experiments import FOLDER


@pytest.mark.parametrize(("symbols", "n"), [(1, 4), (2, 1), (2, 2), (2, 9), (3, 5), (5, 4)])
def test_it_is_the_mean_over_all_strings(symbols, n):
    every = [max(Counter(string).values()) / n for string in itertools.product(range(symbols), repeat=n)]
    assert most_frequent(symbols, [n]) == pytest.approx(np.mean(every), abs=1e-12)


def of_two(n):
    """The closed form for two symbols, whose counts are one binomial: half of n, and its mean deviation."""
    half = -(-n // 2)
    middle = math.lgamma(n + 1) - math.lgamma(half + 1) - math.lgamma(n - half + 1) - n * math.log(2)
    return 0.5 + half * math.exp(middle) / n


@pytest.mark.parametrize("n", [1, 2, 9, 500, 8192, 8193, 20_000, 20_001])
def test_of_two_symbols_it_is_the_closed_form(n):
    assert most_frequent(2, [n]) == pytest.approx(of_two(n), abs=1e-10)


@pytest.mark.parametrize(("symbols", "n"), [(5, 40), (7, 12), (64, 20)])
def test_it_is_that_of_counts_in_whole_numbers(symbols, n):
    """Strings in which no symbol is more frequent than m, counted one symbol after another, without rounding."""

    def strings(m):
        ways = [1] + [0] * n
        for _ in range(symbols):
            ways = [sum(math.comb(t, k) * ways[t - k] for k in range(min(m, t) + 1)) for t in range(n + 1)]
        return ways[n]

    exact = sum(Fraction(symbols**n - strings(m), symbols**n) for m in range(n)) / n
    assert most_frequent(symbols, [n]) == pytest.approx(float(exact), abs=1e-12)


@pytest.mark.parametrize("symbols", [5, 26, 1000])
def test_long_strings_are_as_drawn_and_soon_counted(symbols):
    counts = np.random.default_rng(0).multinomial(20_000, [1 / symbols] * symbols, 10_000).max(1) / 20_000
    begun = time.perf_counter()
    assert most_frequent(symbols, [20_000]) == pytest.approx(counts.mean(), abs=4 * counts.std() / 100)
    assert time.perf_counter() - begun < 20, "about 0.2 s; convolutions of all counts took minutes"


def test_long_strings_of_far_apart_lengths_do_not_underflow():
    """Of 8,192 and of 16,000 tokens: under the rate of their mean neither sum has a probability in float64."""
    sizes = (8192, 16_000)
    assert most_frequent(2, sizes) == pytest.approx(np.mean([of_two(n) for n in sizes]), abs=1e-10)


def test_sizes_are_averaged_alike_however_far_apart():
    sizes = [1, 3, 40, 41, 500]
    assert most_frequent(2, sizes) == pytest.approx(np.mean([most_frequent(2, [n]) for n in sizes]))


@pytest.mark.parametrize("given", [(0, [4]), (2, []), (2, [0, 4])])
def test_strings_of_nothing_are_refused(given):
    with pytest.raises(ValueError, match="make no strings; give one or more"):
        most_frequent(*given)


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
    assert {name: most_frequent(n, range(41, 501)) for name, n in cued.items()} == pytest.approx(ruoss.BAGS)
    for name in cued:
        assert ruoss.TABLE[name][0] == round(100 * ruoss.BAGS[name], 1), name


def test_a_number_at_most_a_point_above_the_highest_floor_is_one():
    claims = [Published("copy", s, v, "x", floor=0.5, bag=0.3) for s, v in {"a": 0.51, "b": 0.511}.items()]
    claims.append(Published("copy", "c", 0.3005, "x", floor=0.5, bag=0.3, seen="memory"))
    others = [
        Published("copy", "d", 0.5, "because", floor=0.5, origin="ours"),
        Published("copy", "e", 0.5, "x", floor=0.5, relation="at most"),
        Order("copy", "a", "b", "x"),
    ]
    (row,) = at_floor([(claims + others, None)])
    assert (row.source, row.task, row.floor, row.bag, row.of) == ("x", "copy", 0.5, 0.3, 3)
    assert row.cells == (("a", 0.51), ("c", 0.3005)) and row.bags == ("c",) and row.seen == ("paper", "memory")
    (none,) = at_floor([([Published("copy", "a", 0.9, "x", floor=0.5)], None)])
    assert none.cells == none.bags == () and none.of == 1


def test_floors_that_a_claim_does_not_give_are_those_of_the_record():
    """0.2 is that of position in the made-up record. Without either nothing can be said."""
    claim = Published("copy", "rope", 0.2, "x")
    (row,) = at_floor([([claim], made.results("x", [made.rope()]))])
    assert (row.floor, row.bag) == (pytest.approx(0.2), None) and at_floor([([claim], None)]) == ()


def test_of_two_experiments_with_one_publication_the_larger_counts():
    small = [Published("copy", "a", 0.1, "x", floor=0.5)]
    large = [*small, Published("copy", "b", 0.1, "x", floor=0.4)]
    for order in ([small, large], [large, small]):
        assert [row.of for row in at_floor([(claims, None) for claims in order])] == [2]
