"""Profiles, ranks and intervals over many tasks, each beside one worked out otherwise, and their coverage."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from posenc.lab.results import control, profiles
from posenc.lab.results import critical_difference as ranking
from posenc.lab.results.fractions import simplest
from posenc.lab.results.statistics import ENOUGH, cells, compare, least_p
from tests.lab import made
from tests.lab.test_control import CURVES, HIGHEST, TASKS, drawn, score, suite

MANY = {name: drawn(k, 0.2 + 0.05 * k) for k, name in enumerate(("rope", "alibi", "t5", "nope", "learned", "fire"))}
SHORT, LONG = 150, pytest.param(3000, marks=pytest.mark.nightly)


def exact_score(scheme, t, s):
    floor = simplest(HIGHEST)
    return (simplest(CURVES[scheme](t, s)) - floor) / (1 - floor)


# performance profiles


@pytest.fixture(scope="module")
def found():
    return {one.scheme: one for one in profiles.profiles(suite(CURVES))}


def test_a_profile_counts_the_runs_above_each_score(found):
    for scheme, one in found.items():
        for tau, share in zip(profiles.TAUS, one.above, strict=True):
            each = [sum(exact_score(scheme, t, s) > simplest(tau) for s in range(6)) / 6 for t in range(len(TASKS))]
            assert share == pytest.approx(sum(each) / len(each))
        assert (np.diff(one.above) <= 0).all() and one.tasks == tuple(sorted(TASKS)) and one.n == 6


def test_each_task_counts_alike_however_many_runs_it_has():
    few, many = (
        suite({"rope": lambda t, s: 1.0, "nope": lambda t, s: 1.0}, range(6), TASKS[:1]),
        suite({"rope": lambda t, s: 0.3, "nope": lambda t, s: 0.3}, range(12), TASKS[1:2]),
    )
    both = made.results("both", [made.written(record) for one in (few, many) for record in one.records])
    assert {round(float(one.above[50]), 9) for one in profiles.profiles(both)} == {0.5}


def test_profiles_are_ordered_by_the_interquartile_mean(found):
    middles = {one.scheme: one.middle for one in control.against(suite(CURVES), "alibi")}
    assert {scheme: one.middle for scheme, one in found.items()} == middles
    assert list(found) == sorted(middles, key=middles.get, reverse=True)


def test_the_band_is_that_of_a_bootstrap_drawn_otherwise(found):
    """One draw after another, with Python's own random numbers: the ends agree within the error of so many draws."""
    import random

    random.seed(1)
    one, tau = found["rope"], 60
    runs = [[score("rope", t, s) for s in range(6)] for t in range(len(TASKS))]
    shares = []
    for _ in range(4000):
        each = [sum(x > profiles.TAUS[tau] for x in random.choices(task, k=6)) / 6 for task in runs]
        shares.append(sum(each) / len(each))
    low, high = np.quantile(shares, [0.025, 0.975])
    assert one.interval[0][tau] == pytest.approx(low, abs=0.035) and one.interval[1][tau] == pytest.approx(
        high, abs=0.035
    )


def test_few_runs_have_no_band():
    assert all(one.interval is None for one in profiles.profiles(suite(CURVES, seeds=range(5))))


def test_a_run_at_the_highest_floor_is_not_above_it():
    flat = suite({"rope": lambda t, s: 0.2, "nope": lambda t, s: 1.0})
    (best, floor) = profiles.profiles(flat)
    assert (best.above[:-1] == 1).all() and best.above[-1] == 0, "none is above 1"
    assert (floor.above == 0).all() and floor.scheme == "rope"


def test_a_task_at_its_floor_or_not_run_by_all_leaves_the_means_and_is_named():
    """On `sort` both guess; a third scheme ran nothing but `copy` and `sort`."""
    curves = {"rope": lambda t, s: 0.9, "nope": lambda t, s: 0.5}
    whole, guesses = suite(curves, tasks=TASKS[:2]), suite(dict.fromkeys(curves, lambda t, s: 0.2), tasks=["sort"])
    alone = suite({"t5": lambda t, s: 0.2}, tasks=["copy", "sort"])
    every = [made.written(record) for one in (whole, guesses) for record in one.records]
    both = made.results("both", every)
    assert control.left_out(both) == {"sort": "no scheme is above its highest floor"}
    assert {one.tasks for one in profiles.profiles(both)} == {("copy", "parity")}
    more = made.results("more", [*every, *map(made.written, alone.records)])
    assert control.left_out(more)["parity"] == "1 scheme did not run it" and set(control.shared(more)["t5"]) == {"copy"}
    with pytest.raises(ValueError, match="Nothing can be compared: on sort no scheme is above its highest floor"):
        control.shared(guesses)


# coverage: what an interval holds, of runs drawn from what is known


def covered(statistic, truth, draw, runs, turns, monkeypatch):
    """How often the interval holds the truth, over so many samples of so many runs of five tasks."""
    monkeypatch.setattr(control, "DRAWS", 400)
    rng, inside = np.random.default_rng(0), 0
    for turn in range(turns):
        low, high = control.bootstrap(statistic, {task: draw(rng, runs) for task in TASKS}, seed=turn)
        inside += low <= truth <= high
    return inside / turns


@pytest.mark.parametrize("turns", [SHORT, LONG])
@pytest.mark.parametrize(("runs", "least"), [(6, 0.84), (20, 0.90)])
def test_the_interval_of_the_interquartile_mean_covers_what_it_can(runs, least, turns, monkeypatch):
    """Of normal runs its truth is their mean; six of each task cover somewhat less than 95 %."""
    middle = lambda drawn: control._middle(np.sort(np.concatenate(drawn, 1), 1))  # noqa: E731
    share = covered(middle, 0.5, lambda rng, n: rng.normal(0.5, 0.1, n), runs, turns, monkeypatch)
    assert least < share < 0.99, share


@pytest.mark.parametrize("turns", [SHORT, LONG])
@pytest.mark.parametrize(("runs", "least"), [(6, 0.84), (20, 0.90)])
def test_the_band_of_a_profile_covers_what_it_can(runs, least, turns, monkeypatch):
    """Of uniform runs a share of .6 is above .4."""
    at = lambda drawn: profiles.above(drawn)[:, 40]  # noqa: E731
    share = covered(at, 0.6, lambda rng, n: rng.uniform(0, 1, n), runs, turns, monkeypatch)
    assert least < share < 0.995, share


@pytest.mark.parametrize("turns", [SHORT, LONG])
def test_alike_schemes_are_parted_from_a_control_as_rarely_as_said(turns):
    """Of five schemes on twelve tasks that are all alike, any is called different at 5 % in at most some 5 %."""
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(turns):
        places = control.ranks(rng.normal(size=(5, 12)))
        raw = dict(enumerate(places))
        wrong += min(control._tested(raw, [1, 2, 3, 4], 0, 12)) < 0.05
    assert wrong / turns < (0.1 if turns < 1000 else 0.06), wrong / turns


# ranks


def table(schemes, tasks, seed=0, ties=False):
    made_up = np.random.default_rng(seed).normal(size=(schemes, tasks))
    return np.round(made_up) if ties else made_up


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(("schemes", "tasks"), [(3, 5), (6, 12), (10, 8)])
def test_friedman_is_that_of_the_formula(schemes, tasks, ties):
    """Demšar (2006), section 3.2.2: χ² from mean ranks, divided by what ties take, then F."""
    scores = table(schemes, tasks, ties=ties) + 0.5 * np.arange(schemes)[:, None]
    places = np.array(
        [[1 + sum(b > a for b in col) + (sum(b == a for b in col) - 1) / 2 for a in col] for col in scores.T]
    )
    rank = places.mean(0)
    chi = 12 * tasks / (schemes * (schemes + 1)) * (sum(rank**2) - schemes * (schemes + 1) ** 2 / 4)
    tied = [sum(c**3 - c for c in np.unique(col, return_counts=True)[1]) for col in scores.T]
    chi /= 1 - sum(tied) / (tasks * (schemes**3 - schemes))
    f = (tasks - 1) * chi / (tasks * (schemes - 1) - chi)
    expected = scipy_stats.f.sf(f, schemes - 1, (schemes - 1) * (tasks - 1))
    assert ranking.friedman(scores) == pytest.approx(expected)


def test_schemes_that_are_equal_or_always_in_one_order_have_a_p():
    assert ranking.friedman(np.ones((4, 6))) == 1
    assert ranking.friedman(np.arange(4)[:, None] + np.zeros((4, 6))) == 0


@pytest.mark.parametrize(("schemes", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (8, 3.031), (10, 3.164)])
def test_the_critical_difference_is_that_of_demsars_table(schemes, q):
    """Table 5(a) of Demšar (2006): q at 5 %."""
    assert ranking.critical(schemes, 14) == pytest.approx(q * math.sqrt(schemes * (schemes + 1) / (6 * 14)), rel=1e-3)


@pytest.mark.parametrize("seed", range(20))
def test_groups_are_the_longest_of_which_no_two_differ(seed):
    ranks = sorted(np.random.default_rng(seed).uniform(1, 8, 8))
    one = ranking.Ranking(tuple("abcdefgh"), tuple(ranks), TASKS, None, 2.0)
    close = [(a, b) for a, b in itertools.combinations(range(8), 2) if ranks[b] - ranks[a] < 2]
    longest = {(a, b) for a, b in close if not any((c, d) != (a, b) and c <= a and b <= d for c, d in close)}
    assert set(one.groups) == longest
    drawn_on = ranking.spans(one.groups)
    for (a, b, line), (c, d, other) in itertools.combinations(drawn_on, 2):
        assert line != other or b < c or d < a, "bars of one line do not meet"


def test_a_ranking_is_ordered_and_few_tasks_are_not_tested():
    one = ranking.ranking(suite(MANY))
    assert list(one.ranks) == sorted(one.ranks) and set(one.schemes) == set(MANY)
    assert one.critical == pytest.approx(ranking.critical(6, 5)) and 0 < one.alike < 1
    few = ranking.ranking(suite(MANY, tasks=TASKS[:4]))
    assert few.critical is None and few.alike is None and few.groups == ()


def test_more_than_twenty_schemes_are_one_sentence():
    crowd = suite({f"rope(base={n}.0)": drawn(n) for n in range(21)}, seeds=range(1))
    with pytest.raises(ValueError, match="has 21 schemes, and a critical-difference diagram at most 20.*--control"):
        ranking.ranking(crowd)
    assert len(control.against(crowd, "rope(base=0.0)")) == 21, "against one control there is no such limit"


def test_the_control_is_no_encoding_unless_another_is_named():
    assert control.control_of(suite(MANY), None) == "nope" and control.control_of(suite(MANY), "t5") == "t5"
    with pytest.raises(ValueError, match="give --control, one of alibi, rope, t5"):
        control.control_of(suite(CURVES), None)


# two schemes


@pytest.mark.parametrize("n", [6, 8, 10])
def test_the_smallest_p_is_that_of_pairs_that_all_agree(n):
    gaps = np.arange(1, n + 1) / 100
    assert least_p(n) == pytest.approx(scipy_stats.wilcoxon(gaps).pvalue)
    assert least_p(ENOUGH) < 0.05 / 20


def test_the_largest_size_that_holds_ends_at_the_first_that_does_not():
    def holds(curve):
        return cells(
            made.results("a", [made.record("rope", "rotary", "copy", [made.trial("rope", "copy", 0, curve)])])
        )[0]

    assert holds({8: 1.0, 16: 0.95, 24: 0.9, 32: 0.3}).holds_to == 24
    assert holds({8: 1.0, 16: 0.5, 24: 1.0, 32: 1.0}).holds_to == 8, "what comes after a gap does not count"
    assert holds({8: 0.5, 16: 1.0}).holds_to is None and holds(dict.fromkeys(made.SIZES, 1.0)).holds_to == 32


def test_compare_says_when_no_difference_can_be_shown():
    from posenc.lab.cli.compare import _paired

    def said(seeds, tasks):
        whole = suite({"rope": lambda t, s: 0.9, "nope": lambda t, s: 0.4 + s / 100}, range(seeds), TASKS[:tasks])
        return _paired(compare(whole, "rope", "nope"), {}, whole.tasks())

    assert "Wilcoxon's p is 0.031 at least with 6 seeds; use 10 seeds, with which it is 0.002." in said(6, 1)
    assert "cannot reach 0.05 after correction for 3 tasks" in said(6, 3)
    assert "at least with" not in said(10, 3)
    assert "Fewer than 6 seeds: no interval and no test" in said(5, 1) and "at least with" not in said(5, 1)


def test_names_that_leave_no_room_in_a_column_are_refused_in_a_sentence():
    from posenc.lab.figures import ranks, venues

    long = {f"sinusoidal @ random_sorted(limit={n})": drawn(n) for n in range(100, 108)}
    with pytest.raises(ValueError, match="no room for this figure in the 3.0 inches of a column; use --width text"):
        venues.fit(ranks.ranks(suite(long)).figure, "acl", "column")
    venues.fit(ranks.ranks(suite(long)).figure, "acl", "text")


def test_a_critical_difference_diagram_joins_what_does_not_differ():
    """A thick bar for each group, from the mean rank of its first to that of its last."""
    from posenc.lab.figures.ranks import ranks

    drawing, one = ranks(suite(MANY)), ranking.ranking(suite(MANY))
    (axes,) = drawing.figure.axes
    bars = [sorted(line.get_xdata()) for line in axes.lines if line.get_linewidth() > 2]
    expected = [[one.ranks[a] - 0.04, one.ranks[b] + 0.04] for a, b in one.groups]
    assert [pytest.approx(ends) for ends in expected] == bars
    said = {text.get_text() for text in axes.texts}
    assert all(any(scheme in text for text in said) for scheme in MANY) and "critical difference" in " ".join(said)
