"""A published number needs three runs to agree, and so does a positive control. Fewer differ if they are far off."""

import pytest

from posenc.lab.results.answer import answer
from posenc.lab.results.evidence import Evidence
from posenc.lab.results.published import ALL
from posenc.lab.results.verdicts import AGREES, DIFFERS, OPEN, UNINFORMATIVE, findings
from tests.lab.seen import Order, Published
from tests.lab.test_false_agreements import one, rate, results
from tests.planting import Fault
from tests.planting import plant as plant


@pytest.mark.parametrize("n", [1, 2])
def test_a_number_that_few_runs_meet_is_open_and_says_how_many_it_needs(n):
    claim = Published("copy", "rope", 0.9, "x")
    found = one(claim, results(rope=(0.9,) * n))
    assert (found.verdict, found.cause, found.needs) == (OPEN, "few", 3)
    assert found.reason == f"n too small: {n} run{'s' * (n > 1)}, and a number needs 3"
    assert f"at least 3 seeds in place of {n} (1 claim)" in answer([found], Evidence(results(rope=(0.9,) * n)))
    assert one(claim, results(rope=(0.9,) * 3)).verdict == AGREES


@pytest.mark.parametrize(("value", "few"), [(0.61, OPEN), (0.611, DIFFERS), (0.39, OPEN), (0.389, DIFFERS)])
@pytest.mark.parametrize("of", ["median", "best"])
def test_few_runs_differ_only_where_the_widest_band_allowed_would(value, few, of):
    """From 0.5 a band of 0.09 reaches 0.59, and the tolerance is 0.02. Three runs at 0.5 differ in all four."""
    claim = Published("copy", "rope", value, "x", of=of)
    assert one(claim, results(rope=(0.5,))).verdict == few
    assert one(claim, results(rope=(0.5,) * 3)).verdict == DIFFERS


def test_few_runs_decide_no_bound_unless_they_are_far_beyond_it():
    for relation, value, verdict in (("at least", 0.3, OPEN), ("at least", 0.7, DIFFERS), ("at most", 0.3, DIFFERS)):
        claim = Published("copy", "rope", value, "x", relation=relation)
        assert one(claim, results(rope=(0.5,), alibi=(0.9,) * 3)).verdict == verdict


@pytest.mark.parametrize(("error", "few"), [(0.01, OPEN), (0.079, OPEN), (0.081, DIFFERS), (0.001, DIFFERS)])
def test_error_rates_of_few_runs_differ_from_a_factor_cubed_on(error, few):
    """A band may span a factor of four, and the claim is met within two."""
    assert rate(error, 0.01, n=2).verdict == few
    assert rate(error, 0.01, n=3).verdict == (AGREES if error == 0.01 else DIFFERS)


def test_few_runs_do_not_show_that_errors_are_absent_or_present():
    for error in (0.0, 0.002):
        assert (rate(error, 0.0, n=1).verdict, rate(error, 0.0, n=1).needs) == (OPEN, 3)
    assert (rate(0.0, 0.0, n=3).verdict, rate(0.002, 0.0, n=3).verdict) == (AGREES, DIFFERS)


@pytest.mark.parametrize("n", [1, 2])
def test_a_scheme_of_few_runs_is_no_positive_control(n):
    claim = Published("copy", "nope", 0.0, "x", tolerance=0.05)
    found = one(claim, results(nope=(0.0,) * 6, rope=(0.9,) * n))
    assert (found.verdict, found.cause, found.needs) == (OPEN, "control", None)
    assert found.reason == "a guess (floor 0.20) meets the claim, and rope, which is clear of it, has fewer than 3 runs"
    assert "3 runs of the scheme that is clear of a guess" in answer([found], Evidence(results(nope=(0.0,) * 6)))
    assert one(claim, results(nope=(0.0,) * 6, rope=(0.9,) * 3)).verdict == AGREES
    assert one(claim, results(nope=(0.0,) * 6, rope=(0.2,) * n)).verdict == UNINFORMATIVE


def test_a_mean_rank_of_one_run_is_open():
    for n, verdict in ((1, OPEN), (3, AGREES)):
        (found,) = findings([Published(ALL, "rope", 1.0, "x")], results(rope=(0.9,) * n, nope=(0.1,) * n))
        assert (found.verdict, found.ours.n) == (verdict, n)


def test_an_order_needs_six_pairs_as_before():
    found = one(Order("copy", "rope", "alibi", "x"), results(rope=(0.9,), alibi=(0.1,)))
    assert (found.verdict, found.needs) == (OPEN, 6)


@pytest.mark.parametrize(
    ("where", "old", "new"),
    [
        ("posenc.lab.results.verdicts:_few", "n >= REPEATS", "True"),
        ("posenc.lab.results.evidence:Evidence.clear", "band.n >= repeats", "band.n"),
    ],
)
def test_a_band_of_one_run_that_counts_is_noticed(where, old, new, plant):
    plant(Fault(where, old, new, "rope", "is open"))
    with pytest.raises(AssertionError):
        test_a_number_that_few_runs_meet_is_open_and_says_how_many_it_needs(1)
        test_a_scheme_of_few_runs_is_no_positive_control(1)
