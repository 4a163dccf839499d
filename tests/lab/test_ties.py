"""Exact ties are ties, and of losses less is better: results of counts, whose right values are fractions."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats as scipy_stats

from posenc.lab import metrics
from posenc.lab.figures import claims
from posenc.lab.results import statistics, ties
from posenc.lab.results.published import Order
from posenc.lab.results.results import Results
from posenc.lab.results.ties import wilcoxon
from posenc.lab.results.verdicts import findings
from posenc.lab.store.schema import GroupRecord, KnobRecord, TaskRecord, TrialRecord

UP, DOWN = {10: 2, 12: 3, 16: 4}, {10: 4, 12: 3, 16: 2}
"""Right answers of ten at three sizes: means of .3, which floats round apart."""


def group(scheme, task, seeds, trained=(8, 8), metric="accuracy", floor=0.0, rows=10):
    """One scheme on one task: of each seed, size to how many are right, or thousandths of a nat lost for each row."""
    trials = []
    for seed, right in enumerate(seeds):
        lost = {n: {"nats": k * metrics.PARTS * rows, "scored": 1000 * rows, "rows": rows} for n, k in right.items()}
        hits = {n: {"correct": k, "scored": rows, "exact": k, "rows": rows} for n, k in right.items()}
        counts = lost if metric in metrics.LOSSES else hits
        knobs = KnobRecord(seed, 1e-3)
        trials.append(TrialRecord(f"{task}-{scheme}-{seed}", knobs, 10, "done", None, counts, validation=counts))
    at = {n: {"uniform": floor} for n in seeds[0]}
    record = TaskRecord(task, metric=metric, trained=trained, floors=at)
    run = {"task": task, "scheme": scheme, "model": "decoder", "shortest": trained[0], "length": trained[1]}
    return GroupRecord(run, scheme, "none", record, tuple(trials), {})


def tied(tasks=("t",)):
    return Results("made", tuple(group(s, t, [of] * 6) for t in tasks for s, of in (("a", UP), ("b", DOWN))))


def losing(metric, tasks=("t",), first=300, second=400):
    """Two schemes of which `a` loses less beyond training; at 8 both lose nearly nothing."""
    made = (("a", first), ("b", second))
    return Results(
        "made", tuple(group(s, t, [{8: 1, 16: k}] * 6, metric=metric, floor=3.0) for t in tasks for s, k in made)
    )


@pytest.mark.parametrize(
    ("up", "down"), [(UP, DOWN), ({10: 2, 12: 4}, {10: 3, 12: 3}), ({10: 1, 12: 2}, {10: 2, 12: 1})]
)
def test_pairs_with_equal_sums_of_counts_tie(up, down):
    (comparison,) = statistics.compare(
        Results("made", (group("a", "t", [up] * 6), group("b", "t", [down] * 6))), "a", "b"
    )
    assert comparison.better == 0.5 and comparison.wilcoxon == 1.0
    assert (comparison.difference.low, comparison.difference.high) == (0.0, 0.0)


def test_all_that_tie_are_named_the_best_with_a_p():
    """`compare` ranks both alike; the caption names both."""
    each = (("a", UP), ("b", DOWN))
    curves = {s: {8: 1000, **{n: 100 * k for n, k in of.items()}} for s, of in each}
    many = [group(s, "t", [curve] * 6, rows=1000) for s, curve in curves.items()]
    worse = group("c", "t", [{8: 1000, 10: 0, 12: 0, 16: 100}] * 6, rows=1000)
    results = Results("made", (*many, worse))
    said = claims.better(results, {})
    assert "a and b above 1 of 1, p = " in said


def test_a_median_of_nine_tenths_holds():
    """The median of .85 and .95, and of .82 and .98, is .9, whatever floats say."""
    for low, high in ((85, 95), (82, 98), (87, 93)):
        seeds = [{8: low, 16: 1}, {8: high, 16: 1}]
        (cell,) = statistics.cells(Results("made", (group("a", "t", seeds, rows=100),)))
        assert cell.holds_to == 8 and statistics.summary(cell.values[8]).median == pytest.approx(0.9)


def test_an_order_of_equal_runs_is_equal():
    (found,) = findings([Order("t", "a", "b", "ours", origin="ours", tolerance=0.0)], tied())
    assert found.cause == "equal" and found.p == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_wilcoxon_is_that_of_all_signs_with_ties_too(seed):
    """Every choice of signs, counted one by one; ranks of equal sizes are shared, and zeros are ranked and left out."""
    rng = random.Random(seed)
    gaps = [Fraction(rng.randint(-3, 4), 10) for _ in range(8)]
    ranks = scipy_stats.rankdata([float(abs(gap)) for gap in gaps])
    signed = [(rank, gap > 0) for rank, gap in zip(ranks, gaps, strict=True) if gap]
    total = sum(rank for rank, _ in signed)
    seen = abs(sum(rank for rank, up in signed if up) - total / 2)
    all_signs = list(itertools.product((0, 1), repeat=len(signed)))
    sums = [sum(rank for (rank, _), up in zip(signed, signs, strict=True) if up) for signs in all_signs]
    expected = sum(abs(s - total / 2) >= seen - 1e-9 for s in sums) / len(sums)
    assert wilcoxon(gaps) == pytest.approx(expected)
    assert wilcoxon([float(gap) for gap in gaps]) == pytest.approx(expected)


def test_wilcoxon_without_ties_is_that_of_scipy():
    gaps = np.random.default_rng(0).normal(0.3, 1, 15)
    assert wilcoxon(gaps) == pytest.approx(scipy_stats.wilcoxon(gaps).pvalue)
    assert wilcoxon([0.1] * 6) == statistics.least_p(6) == 0.03125, "equal gaps are not below the least p"


def test_sums_in_another_order_tie_and_medians_are_not_rounded():
    rng = random.Random(0)
    for _ in range(500):
        values = [rng.randint(0, 1000) / 1000 for _ in range(9)]
        assert ties.mean(values) == ties.mean(rng.sample(values, 9))
    assert ties.difference(ties.median([0.85, 0.95]), 0.9) == 0.0 and ties.levels([0.3, 0.1, 0.1 + 0.2]) == [1, 0, 1]
    assert ties.median([0.999145507812, 0.999755859375]) == (0.999145507812 + 0.999755859375) / 2


def test_a_median_of_two_rates_ties_with_the_share_that_it_is():
    """441/6144 and 5989/6144 have the mean 3215/6144."""
    low, high, same = (k / 6144 for k in (441, 5989, 3215))
    assert ties.difference(ties.median([low, high]), same) == 0.0
    assert wilcoxon([ties.difference(ties.median([low, high]), same)] * 6) == 1.0


@pytest.mark.parametrize("metric", [*metrics.LOSSES])
def test_of_losses_less_is_better(metric):
    results = losing(metric, tasks="tuvwx")
    assert all(comparison.better == 1.0 for comparison in statistics.compare(results, "a", "b"))
    assert "a above 1 of 1" in claims.better(results, {})


def test_a_rate_is_chosen_by_the_least_loss():
    trials = []
    for rate, lost in ((1e-3, 5), (3e-3, 2)):
        (trial,) = group("a", "t", [{8: lost, 16: 1}], metric="nats").trials
        trials.append(
            TrialRecord(f"{rate}", KnobRecord(0, rate), 10, "done", None, trial.evaluations, trial.validation)
        )
    made = group("a", "t", [{8: 1, 16: 1}], metric="nats")
    made = GroupRecord(made.run, made.label, made.family, made.task, tuple(trials), {})
    (cell,) = statistics.cells(Results("made", (made,)))
    assert cell.rate == 3e-3 and cell.ties == (3e-3,)
