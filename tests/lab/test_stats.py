"""Every number against one worked out by hand or by SciPy, and the promises: no best seed, no test sizes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from posenc.lab import metrics
from posenc.lab.results import rates, statistics
from posenc.lab.results.floors import best_floor
from posenc.lab.store.schema import TaskRecord
from posenc.lab.tasks import measure
from tests.lab import made

values = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def results(*records, unfinished=()):
    return made.results("made", records, unfinished)


def test_below_six_runs_the_spread_is_the_range_and_says_so():
    assert statistics.summary([0.5, 0.1, 0.9]) == statistics.Summary(3, 0.5, 0.5, 0.1, 0.9, "range")
    assert statistics.summary([0.2, 0.4, 0.6, 0.8, 1.0]).kind == "range"
    assert statistics.summary([]).n == 0


def test_from_six_runs_on_the_interval_is_the_exact_one_of_the_median():
    ten = [k / 10 for k in range(10)]
    expected = scipy_stats.quantile_test(ten, q=0, p=0.5).confidence_interval(0.95)
    found = statistics.summary(ten[::-1])
    assert (found.low, found.high) == (expected.low, expected.high) == (0.1, 0.8)
    assert found.kind == "exact 95% interval of the median"
    assert (statistics.summary(ten[:6]).low, statistics.summary(ten[:6]).high) == (0.0, 0.5)


@pytest.mark.parametrize("n, rank", [(5, None), (6, 0), (7, 0), (8, 0), (9, 1), (11, 1), (12, 2), (20, 5), (30, 9)])
def test_ranks_are_those_of_the_tables(n, rank):
    """Conover, Practical Nonparametric Statistics, the sign interval at 95 %; here counted from 0."""
    assert statistics.interval_rank(n) == rank


@given(values)
def test_a_summary_is_ordered_and_ignores_the_order_of_runs(x):
    s = statistics.summary(x)
    assert s.n == len(x) and s.low <= s.median <= s.high and min(x) <= s.low and s.high <= max(x)
    assert statistics.summary(sorted(x)) == statistics.summary(x[::-1]) == s


def test_a_value_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="count a diverged run as the floor"):
        statistics.summary([0.5, float("nan")])


def test_rates_are_chosen_by_the_mean_and_ties_go_to_the_smaller():
    assert rates.choose_rate({1e-2: [0.9, 0.0], 1e-3: [0.5, 0.5]}) == 1e-3, "not the best seed"
    assert rates.choose_rate({1e-2: [0.7], 1e-3: [0.7], 1e-4: [0.6]}) == 1e-3
    assert rates.choose_rate({3e-3: [0.1, 0.2, 0.3], 1e-3: [0.3, 0.2, 0.1]}) == 1e-3, "rounding is no reason"
    assert rates.choose_rate({3e-3: [0.2, 0.4], 1e-3: [0.3, 0.3]}) == 1e-3
    assert rates.choose_rate({5e-3: []}) == 5e-3
    with pytest.raises(ValueError, match="0.01"):
        rates.choose_rate({1e-2: [], 1e-3: [0.3]})


def two_rates():
    """At the larger rate worse as far as trained, and perfect beyond."""
    low = [made.trial("rope", "copy", s, {8: 0.9, 16: 0.9, 24: 0.3, 32: 0.2}, lr=1e-3) for s in range(3)]
    high = [made.trial("rope", "copy", s, {8: 0.8, 16: 0.8, 24: 1.0, 32: 1.0}, lr=1e-2) for s in range(3)]
    return made.record("rope", "rotary", "copy", low + high)


def test_test_sizes_never_choose_a_rate():
    (cell,) = statistics.cells(results(two_rates()))
    assert (cell.rate, cell.rates, cell.n) == (1e-3, (1e-3, 1e-2), 3)
    assert cell.values[32] == (0.2, 0.2, 0.2) and cell.counts == {"done": 6}
    assert cell.inside == (8, 16) and cell.beyond == (24, 32)


def test_validation_examples_choose_a_rate_and_no_reported_row_does():
    kinds = {1e-3: (0.6, {8: 0.9}), 1e-2: (0.9, {8: 0.7})}
    trials = [
        made.trial("rope", "copy", s, {8: test, 32: 0.5}, lr=lr, validation=own)
        for lr, (test, own) in kinds.items()
        for s in range(2)
    ]
    record = made.record("rope", "rotary", "copy", trials, sizes=(8, 32))
    (cell,) = statistics.cells(results(record))
    assert (cell.rate, cell.values[8]) == (1e-3, (0.6, 0.6))


def test_a_rate_is_chosen_where_no_reported_size_was_trained_on():
    trials = [
        made.trial("rope", "copy", 0, {32: 0.5}, lr=lr, validation={16: v}) for lr, v in ((1e-3, 0.2), (1e-2, 0.4))
    ]
    trials.append(made.trial("rope", "copy", 0, {}, lr=1e-1, outcome="diverged", validation={}))
    record = made.record("rope", "rotary", "copy", trials, sizes=(32,))
    assert statistics.cells(results(record))[0].rate == 1e-2


def test_a_cell_keeps_the_training_range_of_its_own_records():
    records = made.ranged((4, 16), (4, 24))
    for order in (records, records[::-1]):
        short, long = statistics.cells(results(*order))
        assert (short.trained, short.beyond, short.inside) == ((4, 16), (24, 32), (8, 16))
        assert (long.trained, long.beyond, long.inside) == ((4, 24), (32,), (8, 16, 24))
    other = made.ranged((4, 24), label="alibi", family="linear")
    found = {c.scheme: c.trained for c in statistics.cells(results(records[0], *other))}
    assert found == {"rope": (4, 16), "alibi": (4, 24)}, "schemes of one task may differ too"
    lost = [{**line, "outcome": "failed"} for line in made.plan(other[0], "g")]
    assert statistics.cells(results(unfinished=tuple(lost)))[0].trained == (4, 24)


def test_a_comparison_is_over_sizes_beyond_both_ranges():
    (one,) = statistics.compare(results(*made.ranged((4, 16), (4, 24))), "rope (length=16)", "rope (length=24)")
    assert [(a, b) for _, a, b in one.pairs] == [(0.5, 0.5)] * 3


def test_a_diverged_run_enters_as_the_uniform_guess_and_is_counted():
    record = made.rope((0, 1, 2))
    record["trials"][1] |= {"outcome": "diverged", "evaluations": {}}
    (cell,) = statistics.cells(results(record))
    assert cell.values[8] == (1.0, made.FLOORS["uniform"], 1.0) and cell.n == 3
    assert cell.counts == {"done": 2, "diverged": 1}


def test_a_rate_that_diverges_loses():
    record = two_rates()
    for trial in record["trials"][:3]:
        trial |= {"outcome": "diverged", "evaluations": {}}
    assert statistics.cells(results(record))[0].rate == 1e-2


def test_failed_trials_are_counted_and_have_no_value():
    lines = [{**line, "outcome": "failed"} for line in made.plan(made.rope((7,)), "g")]
    lines += [
        {**line, "outcome": "pending"} for line in made.plan(made.rope((0,), label="alibi", family="linear"), "h")
    ]
    alibi, rope = statistics.cells(results(made.rope(), unfinished=tuple(lines)))
    assert rope.counts == {"done": 3, "failed": 1} and rope.n == 3
    assert alibi.counts == {"pending": 1} and alibi.n == 0 and alibi.rate is None


def test_errors_are_turned_into_accuracy():
    record = made.rope()
    record["task"] |= {"metric": "error", "floors": {str(n): {"uniform": 0.9, "position": 0.75} for n in made.SIZES}}
    record["trials"][0] |= {"outcome": "diverged", "evaluations": {}}
    rows = [r for r in results(record).rows() if r.size == 8]
    assert [r.value for r in rows] == [pytest.approx(0.1), 1.0, 1.0]


def pair(a, b):
    """Two schemes over seeds, their values at both sizes beyond the training range."""
    records = []
    for label, xs in (("a", a), ("b", b)):
        trials = [made.trial(label, "copy", s, {16: 1.0, 24: x, 32: x}) for s, x in enumerate(xs)]
        records.append(made.record(label, "f", "copy", trials))
    return results(*records)


def test_a_comparison_pairs_by_task_and_seed():
    (found,) = statistics.compare(pair([0.9, 0.5, 0.4], [0.8, 0.5, 0.6]), "a", "b")
    assert (found.task, [seed for seed, *_ in found.pairs], found.n) == ("copy", [0, 1, 2], 3)
    assert found.better == pytest.approx((1 + 0.5 + 0) / 3)
    assert found.difference.median == 0.0 and found.difference.low == pytest.approx(-0.2)
    assert (found.difference.kind, found.wilcoxon, found.interval) == ("range", None, None)
    assert statistics.compare(pair([0.9], [0.8]), "a", "b", size=24)[0].pairs == ((0, 0.9, 0.8),)


def test_tasks_of_one_seed_are_no_pairs_of_their_own():
    """Three tasks on two seeds are two runs, six pairs or not."""
    records = [
        made.rope((0, 1), task, label, label, drop)
        for task in ("copy", "index", "sort")
        for label, drop in (("rope", 0.1), ("alibi", 0.3))
    ]
    found = statistics.compare(results(*records), "rope", "alibi")
    assert [(c.task, c.n, c.interval, c.wilcoxon) for c in found] == [
        (task, 2, None, None) for task in ("copy", "index", "sort")
    ]


def test_a_comparison_of_nothing_is_refused():
    with pytest.raises(ValueError, match="'a' is compared with itself; give two of a, b"):
        statistics.compare(pair([0.5], [0.5]), "a", "a")
    with pytest.raises(ValueError, match="'c' is not in these results; they hold a, b"):
        statistics.compare(pair([0.5], [0.5]), "a", "c")
    with pytest.raises(ValueError, match="measured at size 7; their sizes are 16, 24, 32"):
        statistics.compare(pair([0.5], [0.5]), "a", "b", size=7)
    apart = results(made.rope((0,)), made.rope((1,), label="alibi", family="linear"))
    with pytest.raises(ValueError, match="share no seed of a task"):
        statistics.compare(apart, "rope", "alibi")


def test_a_comparison_of_eight_pairs_agrees_with_scipy():
    a, b = [0.91, 0.85, 0.77, 0.69, 0.95, 0.73, 0.81, 0.66], [0.9, 0.8, 0.7, 0.7, 0.9, 0.7, 0.7, 0.6]
    (found,) = statistics.compare(pair(a, b), "a", "b")
    assert found.wilcoxon == pytest.approx(scipy_stats.wilcoxon(np.subtract(a, b), zero_method="zsplit").pvalue)
    wilson = scipy_stats.binomtest(7, 8).proportion_ci(method="wilson")
    assert found.better == 7 / 8 and found.interval == pytest.approx((wilson.low, wilson.high))
    assert found.difference.kind == statistics.INTERVAL
    (back,) = statistics.compare(pair(a, b), "b", "a")
    assert back.better == 1 - found.better and back.difference.median == pytest.approx(-found.difference.median)


def test_seeds_that_only_one_scheme_ran_make_no_pair():
    assert [seed for seed, *_ in statistics.compare(pair([0.5, 0.6, 0.7], [0.1]), "a", "b")[0].pairs] == [0]


def test_the_best_floor_is_the_one_highest_on_average():
    floors = {8: {"uniform": 0.5, "prior": 0.1}, 9: {"uniform": 0.1, "prior": 0.4}}
    task = TaskRecord("copy", "token", (4, 7), floors)
    assert best_floor(task, (8, 9)) == ("uniform", pytest.approx(0.3))
    assert best_floor(task, (9,)) == ("prior", 0.4)
    assert best_floor(task, ()) is best_floor(task, (7,)) is None


@settings(max_examples=25, deadline=None)
@given(st.permutations(range(4)))
def test_the_order_in_which_results_arrive_changes_nothing(order):
    records = [made.rope(task=t, label=s, family=s) for t in ("copy", "sort") for s in ("rope", "alibi")]
    shuffled = results(*(records[k] for k in order))
    assert statistics.cells(shuffled) == statistics.cells(results(*records))
    assert shuffled.rows() == results(*records).rows()


def test_results_can_be_chosen_from():
    both = results(made.rope(), made.rope(label="alibi", family="linear"))
    assert {r.scheme for r in both.only(scheme="rope").rows()} == {"rope"}
    assert {r.seed for r in both.only(seed=(0, 2)).rows()} == {0, 2}
    assert both.only(task="sort").rows() == []
    with pytest.raises(ValueError, match="cannot be chosen by 'colour'"):
        both.only(colour="red")
    assert both.choices("scheme") == ["alibi", "rope"] and both.choices("seed") == [0, 1, 2]


def test_a_scheme_is_chosen_by_its_label_and_by_its_text():
    short, long = made.ranged((4, 16), (4, 24))
    both = results(short, long, made.rope(task="sort", label="alibi"))
    assert both.choices("scheme") == ["alibi", "alibi (length=16)", "rope", "rope (length=16)", "rope (length=24)"]
    assert {r.scheme for r in both.only(scheme="rope").rows()} == {"rope (length=16)", "rope (length=24)"}
    one = both.only(scheme="rope (length=24)")
    assert {(r.scheme, r.trained_to) for r in one.rows()} == {("rope (length=24)", 24)}, "labels stay"


@pytest.mark.parametrize("metric", metrics.RIGHT)
def test_records_read_each_metric_as_tasks_do(metric):
    sums = {"correct": 3, "scored": 8, "exact": 5, "last": 7, "rows": 11, "beyond": 2, "beyond_scored": 6}
    sums |= {"gained": 4, "gainable": 9}
    share = measure.score(sums, metric)
    assert metrics.share(sums, metric) == (1 - share if metric == "error" else share)
