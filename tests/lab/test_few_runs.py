"""A published number is met by three runs, and rejected by six, as an order is; a positive control needs three."""

import pytest

from posenc.lab.results.published import ALL
from posenc.lab.results.reproduction import AGREES, BOTH, DIFFERS, OPEN, UNINFORMATIVE
from posenc.lab.results.verdicts import findings
from tests.lab.seen import Order, Published
from tests.lab.test_false_agreements import one, rate, results


@pytest.mark.parametrize("n", [1, 2])
def test_a_number_that_few_runs_meet_is_open_and_says_how_many_it_needs(n):
    claim = Published("copy", "rope", 0.9, "x")
    found = one(claim, results(rope=(0.9,) * n))
    assert (found.verdict, found.cause, found.needs) == (OPEN, "few", 3)
    assert found.reason == f"n too small: {n} run{'s' * (n > 1)}, and a number needs 3"
    assert one(claim, results(rope=(0.9,) * 3)).verdict == AGREES


@pytest.mark.parametrize("of", ["median", "best"])
def test_a_number_is_rejected_by_as_many_runs_as_an_order(of):
    """Five of five runs far from it are as likely, if it is their median, as five pairs of one sign: 1 in 16."""
    claim, order = Published("copy", "rope", 0.9, "x", of=of), Order("copy", "alibi", "rope", "x")
    for n, verdict in ((1, OPEN), (3, OPEN), (5, OPEN), (6, DIFFERS)):
        runs = results(rope=(0.5,) * n, alibi=(0.3,) * n)
        assert one(claim, runs).verdict == one(order, runs).verdict == verdict
        assert {one(claim, runs).needs, one(order, runs).needs} == {6 if verdict == OPEN else None}
    few = one(claim, results(rope=(0.5,) * 3))
    assert few.reason == "n too small: 3 runs, and a number is rejected by 6; our runs are 0.40 below 0.90"


def test_few_runs_reject_no_bound():
    for relation, value in (("at least", 0.7), ("at most", 0.3)):
        claim = Published("copy", "rope", value, "x", relation=relation)
        for n, verdict in ((3, OPEN), (6, DIFFERS)):
            assert one(claim, results(rope=(0.5,) * n, alibi=(0.9,) * 3)).verdict == verdict
    assert one(Published("copy", "rope", 0.3, "x", relation="at least"), results(rope=(0.5,) * 2)).needs == 3


def test_error_rates_of_few_runs_are_met_by_three_and_rejected_by_six():
    for error in (0.0, 0.002):
        assert rate(error, 0.0, n=1).verdict == OPEN
    assert (rate(0.0, 0.0, n=3).verdict, rate(0.01, 0.01, n=3).verdict) == (AGREES, AGREES)
    for error, claimed in ((0.002, 0.0), (0.079, 0.01), (0.001, 0.01)):
        assert (rate(error, claimed, n=5).verdict, rate(error, claimed, n=5).needs) == (OPEN, 6)
        assert rate(error, claimed, n=6).verdict == DIFFERS


@pytest.mark.parametrize("n", [1, 2])
def test_a_scheme_of_few_runs_is_no_positive_control(n):
    claim = Published("copy", "nope", 0.0, "x", tolerance=0.05)
    found = one(claim, results(nope=(0.0,) * 6, rope=(0.9,) * n))
    assert (found.verdict, found.cause, found.needs) == (OPEN, "control", None)
    said = "a guess (baseline 0.20) meets the claim, and rope, which is clear of it, has fewer than 3 runs"
    assert found.reason == said
    assert one(claim, results(nope=(0.0,) * 6, rope=(0.9,) * 3)).verdict == BOTH
    assert one(claim, results(nope=(0.0,) * 6, rope=(0.2,) * n)).verdict == UNINFORMATIVE


def test_a_mean_rank_of_one_run_is_open():
    for n, verdict in ((1, OPEN), (3, AGREES)):
        (found,) = findings([Published(ALL, "rope", 1.0, "x")], results(rope=(0.9,) * n, nope=(0.1,) * n))
        assert (found.verdict, found.ours.n) == (verdict, n)
