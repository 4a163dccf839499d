"""Ranks: reciprocal ranks by hand, Spearman's correlation against SciPy and against a second implementation."""

import itertools

import numpy as np
import pytest
from scipy.stats import spearmanr

from posenc.lab.cli.claims import ranked
from posenc.lab.results import rank_agreement
from posenc.lab.results.evidence import Evidence
from posenc.lab.results.published import ALL
from posenc.lab.results.rank_agreement import WHOLE, rank_correlations, reciprocal_ranks, spearman
from posenc.lab.results.reproduction import NOT_RUN, UNINFORMATIVE
from posenc.lab.results.verdicts import findings
from tests.lab import made
from tests.lab.seen import Order, Published
from tests.lab.test_false_agreements import record


def measured(tasks):
    """Task to scheme to one value per seed, the same at both sizes beyond the training range."""
    return made.results("x", [record(s, values, task) for task, row in tasks.items() for s, values in row.items()])


def by_hand(x, y):
    """Spearman's correlation of a few numbers: each rank by counting, and Pearson's of the ranks."""

    def ranks(values):
        return [sum(v < w for v in values) + (sum(v == w for v in values) + 1) / 2 for w in values]

    a, b = ranks(x), ranks(y)
    mean = (len(x) + 1) / 2
    top = sum((i - mean) * (j - mean) for i, j in zip(a, b, strict=True))
    return top / (sum((i - mean) ** 2 for i in a) * sum((j - mean) ** 2 for j in b)) ** 0.5


def test_spearman_is_that_of_scipy_and_of_a_count_by_hand_with_ties_too():
    rng = np.random.default_rng(0)
    for n, values in itertools.product((4, 5, 11), (2, 4, 100)):
        x, y = rng.integers(0, values, (2, 50, n)).astype(float)
        ours = spearman(x, y)
        for a, b, value in zip(x, y, ours, strict=True):
            if len(set(a)) == 1 or len(set(b)) == 1:
                assert np.isnan(value)
                continue
            assert value == pytest.approx(spearmanr(a, b).statistic) == pytest.approx(by_hand(a, b))


PUBLISHED = {"a": 0.9, "b": 0.7, "c": 0.5, "d": 0.3}


def claims(task="copy", **values):
    return [Published(task, scheme, value, "x") for scheme, value in (values or PUBLISHED).items()]


def test_a_column_is_correlated_by_medians_whatever_the_scale():
    """Ours are far lower and in the same order but for the last two: 1 - 6 · 2 / 60 = 0.8."""
    runs = {"a": (0.5, 0.6, 0.55), "b": (0.45, 0.4, 0.5), "c": (0.3, 0.3, 0.3), "d": (0.31, 0.31, 0.31)}
    (found,) = rank_correlations(claims(), Evidence(measured({"copy": runs})))
    assert (found.column, found.schemes, found.cells, found.runs) == ("copy", 4, 4, 3)
    assert found.value == pytest.approx(0.8) and found.low <= found.value <= found.high


def test_the_interval_is_of_runs_drawn_anew_and_the_same_each_time():
    """Two schemes whose runs overlap change places in some draws and in no others; a third is far away."""
    apart = {s: (v, v + 0.01, v - 0.01) for s, v in PUBLISHED.items()}
    overlapping = apart | {"a": (0.6, 0.9, 0.95), "b": (0.55, 0.7, 0.92)}
    (sure,) = rank_correlations(claims(), Evidence(measured({"copy": apart})))
    (unsure,) = rank_correlations(claims(), Evidence(measured({"copy": overlapping})))
    assert (sure.low, sure.value, sure.high) == (1.0, 1.0, 1.0)
    assert unsure.value == 1.0 and unsure.low == pytest.approx(0.8)
    assert rank_correlations(claims(), Evidence(measured({"copy": overlapping}))) == (unsure,)


def test_fewer_than_four_schemes_and_equal_numbers_have_no_correlation():
    three = {s: (v,) for s, v in list(PUBLISHED.items())[:3]}
    (found,) = rank_correlations(claims(), Evidence(measured({"copy": three})))
    assert found.schemes == 3 and found.value is found.low is found.high is None
    (found,) = rank_correlations(claims(), Evidence(measured({"copy": dict.fromkeys(PUBLISHED, (0.5,))})))
    assert found.schemes == 4 and found.value is None


def test_bounds_orders_and_predictions_of_ours_are_no_part_of_a_column():
    others = [
        Published("copy", "a", 0.1, "x", relation="at least"),
        Published("copy", "a", 0.1, "because", origin="ours"),
        Order("copy", "d", "a", "x"),
    ]
    results = Evidence(measured({"copy": {s: (v,) for s, v in PUBLISHED.items()}}))
    assert rank_correlations([*claims(), *others], results) == rank_correlations(claims(), results)
    assert rank_correlations(others, results) == ()


def test_the_whole_table_is_correlated_by_what_is_above_the_floors():
    """Published: sort is at its floor, 0.9, throughout. By the raw numbers it would come before all of copy."""
    sort = [Published("sort", s, v, "x", floor=0.9) for s, v in {"a": 0.9, "b": 0.85, "c": 0.8, "d": 0.9}.items()]
    ours = {"copy": {s: (v,) for s, v in PUBLISHED.items()}, "sort": {s: (0.2,) for s in PUBLISHED}}
    *_, whole = rank_correlations([*claims(), *sort], Evidence(measured(ours)))
    assert (whole.column, whole.measure, whole.schemes, whole.cells) == (WHOLE, None, 4, 8)
    assert whole.value == pytest.approx(1.0)
    raw = [*PUBLISHED.values(), 0.9, 0.85, 0.8, 0.9], [*PUBLISHED.values(), *[0.2] * 4]
    assert spearmanr(*raw).statistic < 0.6


def test_two_publications_of_one_task_have_a_column_each():
    """Each agrees with our order; mixed, the lower numbers of the second would turn it round. So with whole tables."""
    other = [Published("copy", s, v / 10, "y") for s, v in {"a": 0.9, "b": 0.7, "e": 0.5, "f": 0.3}.items()]
    runs = {"a": (0.9,), "b": (0.7,), "c": (0.5,), "d": (0.3,), "e": (0.69,), "f": (0.2,)}
    found = rank_agreement.rank_correlations([*claims(), *other], Evidence(measured({"copy": runs})))
    assert [(one.column, one.source, one.schemes) for one in found] == [("copy", "x", 4), ("copy", "y", 4)]
    assert [one.value for one in found] == pytest.approx([1.0, 1.0])
    said = ranked(found)
    assert "copy in x 1.00" in said and "copy in y 1.00" in said and WHOLE not in said
    assert ranked(found[:1]).startswith(
        "Rank correlation (Spearman) with what was published; intervals are over our runs, not over schemes: copy 1.00"
    )
    sort = [Published("sort", *claim) for claim in (("a", 0.9, "y"), ("b", 0.1, "y"))]
    both = Evidence(measured({"copy": runs, "sort": runs}))
    wholes = [one for one in rank_correlations([*claims(), *other, *sort], both) if one.column == WHOLE]
    assert [(one.source, one.cells) for one in wholes] == [("y", 6)]


def test_reciprocal_ranks_are_averaged_over_tasks_and_equals_share_theirs():
    """By hand, seed 0: on copy a, b, c are first, second and third; on sort b is first, a and c share 2 and 3."""
    values = {"copy": {"a": (0.9,), "b": (0.8,), "c": (0.1,)}, "sort": {"a": (0.3,), "b": (0.7,), "c": (0.3,)}}
    expected = {"a": (1 + 1 / 2.5) / 2, "b": (1 / 2 + 1) / 2, "c": (1 / 3 + 1 / 2.5) / 2}
    for name, rank in expected.items():
        (found,) = findings([Published(ALL, name, round(rank, 4), "x", tolerance=0.0)], measured(values))
        assert found.ours.median == pytest.approx(rank) and found.ours.n == 1
    del values["sort"]["c"]
    (found,) = findings([Published(ALL, "c", 0.7, "x")], measured(values))
    assert found.verdict == NOT_RUN


def test_a_task_on_which_no_scheme_is_clear_of_its_floor_leaves_a_mean_rank():
    """On the dead task all are at zero, where each of three would have the rank 2."""
    live = {"a": (0.9,), "b": (0.8,), "c": (0.1,)}
    claim = Published(ALL, "a", 1.0, "x", tolerance=0.1)
    carried = Evidence(measured({"copy": live, "dead": dict.fromkeys(live, (0.0,))}))
    assert reciprocal_ranks(claim, carried) == {0: 1.0}
    (found,) = findings([claim], measured({"dead": dict.fromkeys(live, (0.0,))}))
    assert found.verdict == UNINFORMATIVE and "no task has a scheme clear of its floor" in found.reason
