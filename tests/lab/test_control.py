"""One scheme against all others over several tasks: every number beside one worked out otherwise, and its coverage."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from posenc.lab.results import control
from posenc.lab.results.control import against
from posenc.lab.results.statistics import compare, wilson
from tests.lab import made

TASKS = ("copy", "parity", "reverse", "sort", "count")
HIGHEST = max(made.FLOORS.values())


def suite(curves, seeds=range(6), tasks=TASKS):
    """Records of each scheme on every task: `curves[scheme](task number, seed)` is its accuracy beyond training."""
    recs = []
    for scheme, curve in curves.items():
        for t, task in enumerate(tasks):
            at = lambda seed: {8: 1.0, 16: 1.0, 24: curve(t, seed), 32: curve(t, seed)}  # noqa: B023, E731
            trials = [made.trial(scheme, task, seed, at(seed)) for seed in seeds]
            recs.append(made.record(scheme, "rotary", task, trials))
    return made.results("suite", recs)


def drawn(seed, low=0.2):
    """Accuracies to a thousandth, as records hold them."""
    rng = np.random.default_rng(seed)
    table = np.round(rng.uniform(low, 1, (len(TASKS), 6)), 3)
    return lambda t, s: float(table[t, s])


CURVES = {"rope": drawn(0, 0.5), "alibi": drawn(1), "t5": drawn(2, 0.3)}


@pytest.fixture(scope="module")
def found():
    return against(suite(CURVES), "alibi")


def score(scheme, t, s):
    return (CURVES[scheme](t, s) - HIGHEST) / (1 - HIGHEST)


def test_the_control_comes_first_and_then_the_best_ranks(found):
    assert [one.scheme for one in found][0] == "alibi" and {one.scheme for one in found} == set(CURVES)
    assert [one.rank for one in found[1:]] == sorted(one.rank for one in found[1:])


def test_the_probability_of_improvement_counts_pairs_within_each_task(found):
    for one in found[1:]:
        each = []
        for t in range(len(TASKS)):
            pairs = itertools.product(range(6), range(6))
            gaps = [CURVES[one.scheme](t, a) - CURVES["alibi"](t, b) for a, b in pairs]
            each.append(sum(1.0 if gap > 0 else 0.5 if gap == 0 else 0.0 for gap in gaps) / len(gaps))
        assert one.improvement == pytest.approx(sum(each) / len(each))


def test_the_middle_is_the_mean_of_the_middle_half(found):
    for one in found:
        runs = [score(one.scheme, t, s) for t in range(len(TASKS)) for s in range(6)]
        assert one.middle == pytest.approx(scipy_stats.trim_mean(runs, 0.25))


def test_ranks_are_the_mean_places_and_their_test_is_that_of_demsar(found):
    places = {scheme: [] for scheme in CURVES}
    for t in range(len(TASKS)):
        means = {scheme: sum(score(scheme, t, s) for s in range(6)) / 6 for scheme in CURVES}
        for place, scheme in enumerate(sorted(means, key=means.get, reverse=True), 1):
            places[scheme].append(place)
    rank = {scheme: sum(at) / len(at) for scheme, at in places.items()}
    assert len(set(rank.values())) == 3
    raw = {}
    for one in found:
        assert one.rank == pytest.approx(rank[one.scheme])
        z = (rank[one.scheme] - rank["alibi"]) / math.sqrt(3 * 4 / (6 * len(TASKS)))
        raw[one.scheme] = 2 * scipy_stats.norm.sf(abs(z))
    small, large = sorted(one.scheme for one in found[1:]) if raw["rope"] < raw["t5"] else ("t5", "rope")
    p = {one.scheme: one.p for one in found}
    assert p["alibi"] is None
    assert p[small] == pytest.approx(min(1, 2 * raw[small]))
    assert p[large] == pytest.approx(max(min(1, 2 * raw[small]), raw[large]))


def test_holm_multiplies_the_smallest_most_and_keeps_the_order():
    assert control.holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert control.holm([0.6, 0.7]) == [1.0, 1.0]


def test_ties_are_half_and_share_their_places():
    same = suite({"rope": lambda t, s: 0.5, "alibi": lambda t, s: 0.5})
    one, other = against(same, "rope")
    assert (one.rank, other.rank, other.improvement, other.p) == (1.5, 1.5, 0.5, 1.0)


def test_a_scheme_at_the_highest_floor_scores_nothing():
    flat = suite({"rope": lambda t, s: HIGHEST, "alibi": lambda t, s: 1.0})
    one, other = against(flat, "rope")
    assert one.middle == pytest.approx(0) and other.middle == pytest.approx(1)
    assert other.improvement == 1 and other.improvement_interval == pytest.approx((0.6097, 1.0), abs=1e-4)


def test_the_interval_of_a_probability_is_that_of_two_schemes():
    """Whichever way it is asked: by Wilson, with the runs of a task as n."""
    found = suite({"rope": lambda t, s: 0.9 - s / 100, "alibi": lambda t, s: 0.5 + s / 100}, tasks=["copy"])
    (pair,), (_, beside) = compare(found, "rope", "alibi"), against(found, "alibi")
    assert (pair.better, pair.interval) == (beside.improvement, beside.improvement_interval)
    assert pair.interval[0] == pytest.approx(0.6097, abs=1e-4)


def test_a_scheme_below_the_highest_floor_scores_nothing_and_not_less():
    """What is below the floor has learned as little as what is at it: both score 0, and neither is better."""
    below = suite({"rope": lambda t, s: s / 100, "alibi": lambda t, s: HIGHEST, "t5": lambda t, s: 1.0})
    one, other, best = sorted(against(below, "rope"), key=lambda one: one.rank + (one.scheme == "alibi"))[::-1]
    assert (one.middle, other.middle, best.middle) == pytest.approx((0, 0, 1)) and one.rank == other.rank == 2.5
    assert {found.improvement for found in (one, other)} == {0.5}


def test_few_runs_have_no_interval_and_few_tasks_no_test():
    for one in against(suite(CURVES, seeds=range(5), tasks=TASKS[:4]), "rope"):
        assert one.n == 5 and one.middle_interval is None and one.improvement_interval is None and one.p is None


def test_only_tasks_that_all_schemes_ran_count():
    both, alone = suite({"rope": drawn(0), "alibi": drawn(1)}), suite({"t5": drawn(2)}, tasks=TASKS[:2])
    for one in against(made.results("two", [*map(made.written, (*both.records, *alone.records))]), "rope"):
        assert one.tasks == tuple(sorted(TASKS[:2]))


def test_what_cannot_be_compared_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="'nope' is not in these results; they hold alibi, rope, t5"):
        against(suite(CURVES), "nope")
    with pytest.raises(ValueError, match="the only scheme"):
        against(suite({"rope": drawn(0)}), "rope")
    apart = suite({"rope": drawn(0)}, tasks=["copy"]), suite({"alibi": drawn(1)}, tasks=["sort"])
    recs = [made.written(record) for one in apart for record in one.records]
    with pytest.raises(ValueError, match="No task was measured beyond"):
        against(made.results("apart", recs), "rope")


@pytest.mark.parametrize("runs, least", [(6, 0.85), (20, 0.9)])
def test_the_bootstrap_covers_what_it_can(runs, least, monkeypatch):
    """Of the mean over five tasks of P(a > b), which for normals one apart is known; few runs cover less than 95 %."""
    monkeypatch.setattr(control, "DRAWS", 300)
    truth, rng, inside = scipy_stats.norm.cdf(1 / math.sqrt(2)), np.random.default_rng(0), {"bootstrap": 0, "Wilson": 0}
    for turn in range(200):
        first = {task: rng.normal(1, 1, runs) for task in TASKS}
        second = {task: rng.normal(0, 1, runs) for task in TASKS}
        better = lambda a, b: np.mean([*map(control._better, a, b)], axis=0)  # noqa: E731
        low, high = control.bootstrap(better, first, second, seed=turn)
        inside["bootstrap"] += low <= truth <= high
        low, high = wilson(control.improvement(first, second), runs)
        inside["Wilson"] += low <= truth <= high
    assert least < inside["bootstrap"] / 200 < 0.985 and inside["Wilson"] / 200 >= 0.95
