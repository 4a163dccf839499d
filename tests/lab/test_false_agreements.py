"""Agreements that show nothing, each planted: 0 = 0, floor = floor, a band that meets anything, few seeds, error rates
that accuracies hide, our own prediction, an order that choosing the best rate deletes. None of them agrees."""

import dataclasses

import pytest
from scipy.stats import binom, binomtest

from posenc.lab.results.evidence import Evidence
from posenc.lab.results.numbers import unseen
from posenc.lab.results.orders import sign_test
from posenc.lab.results.reproduction import AGREES, BOTH, DIFFERS, NOT_RUN, OPEN, UNINFORMATIVE
from posenc.lab.results.verdicts import count_verdicts, findings
from tests.lab import made
from tests.lab.seen import Order, Published

FLAT = {8: 1.0, 16: 1.0}


def record(scheme, values, task="copy", lr=1e-3, rows=100):
    """One value per seed at both sizes beyond the training range."""
    trials = [made.trial(scheme, task, s, FLAT | {24: v, 32: v}, lr, rows=rows) for s, v in enumerate(values)]
    return made.record(scheme, "none", task, trials)


def results(**schemes):
    return made.results("x", [record(scheme, values) for scheme, values in schemes.items()])


def one(claim, found):
    (only,) = findings([claim], found)
    return only


@pytest.mark.parametrize("relation", ["is", "at most"])
def test_zero_is_zero_where_nothing_is_learned(relation):
    claim = Published("copy", "nope", 0.0, "x", tolerance=0.05, relation=relation)
    dead = one(claim, results(nope=(0.0,) * 6, rope=(0.0,) * 6))
    assert dead.verdict == UNINFORMATIVE and "none of our schemes is clear of it" in dead.reason
    assert one(claim, results(nope=(0.0,) * 6, rope=(0.9,) * 6)).verdict == BOTH, "rope is a positive control"


def test_an_upper_bound_is_met_by_whoever_learns_nothing():
    """Far above the floor too: the floor is 0.2, and our runs are at it."""
    claim = Published("copy", "nope", 0.9, "x", relation="at most")
    assert one(claim, results(nope=(0.2,) * 6)).verdict == UNINFORMATIVE
    assert one(claim, results(nope=(0.2,) * 6, rope=(0.95,) * 6)).verdict == AGREES


def test_runs_without_an_error_agree_with_no_rate_far_below_what_they_resolve():
    """Of 100 examples none to two are wrong; a rate of 1 in 100,000 is beyond what they show."""
    few = results(rope=(1.0, 0.99, 0.99, 0.99, 0.98, 0.98))
    found = one(Published("copy", "rope", 1e-5, "x", scale="log"), few)
    assert found.verdict == OPEN and "too coarse" in found.reason


def test_a_floor_is_a_floor():
    """A guess of position gets 0.2, and three standard errors of two hundred rows are 0.085. A control counts only if
    its whole band is clear of it by that."""
    claim = Published("copy", "nope", 0.21, "x", tolerance=0.05)
    for others, verdict in (
        ((0.2, 0.21, 0.22), UNINFORMATIVE),
        ((0.28, 0.9, 0.9), UNINFORMATIVE),
        ((0.29, 0.3, 0.9), BOTH),
    ):
        found = one(claim, results(nope=(0.2, 0.21, 0.2), rope=others))
        assert (found.verdict, found.explained) == (verdict, True)


def test_the_bag_is_a_floor_too():
    """A model that names the row's most frequent token has learned no order; the other floors are far below."""
    bag = {n: made.FLOORS | {"bag": 0.53} for n in ("8", "16", "24", "32")}
    rec = record("nope", (0.53,) * 3)
    rec["task"]["floors"] = bag
    found = one(Published("copy", "nope", 0.528, "x"), made.results("x", [rec]))
    assert (found.verdict, found.floor, found.explained) == (UNINFORMATIVE, 0.53, True)


def test_a_control_is_of_the_same_task_metric_and_sizes():
    """Perfect at the sizes trained on, and on another task; not where the claim is."""
    found = made.results("x", [record("nope", (0.2,) * 6), record("rope", (0.9,) * 6, task="sort")])
    assert one(Published("copy", "nope", 0.2, "x"), found).verdict == UNINFORMATIVE
    assert one(Published("copy", "nope", 0.2, "x", over="trained"), found).verdict == DIFFERS


def test_an_unknown_floor_is_taken_for_zero():
    """Whole answers have no floor in these records: none is right, by any scheme."""
    claim = Published("copy", "nope", 0.0, "x", metric="exact")
    rec = record("nope", (0.5,) * 3)
    for trial in rec["trials"]:
        for counts in trial["evaluations"].values():
            counts["exact"] = 0
    found = one(claim, made.results("x", [rec]))
    assert (found.verdict, found.floor) == (UNINFORMATIVE, None) and "of zero" in found.reason


def test_a_band_so_wide_that_it_meets_anything():
    """Twice the tolerance and 0.05 are allowed: 0.09. What lies outside of a wide band differs all the same."""
    wide = results(rope=(0.871, 0.95, 0.95, 0.98, 0.98, 1.0))
    found = one(Published("copy", "rope", 0.932, "x"), wide)
    assert found.verdict == OPEN and "0.13 wide, and 0.09 is allowed" in found.reason and found.needs == 9
    assert one(Published("copy", "rope", 0.5, "x"), wide).verdict == DIFFERS
    assert one(Published("copy", "rope", 0.932, "x", tolerance=0.04), wide).verdict == AGREES
    assert one(Published("copy", "rope", 0.932, "x"), results(rope=(0.91, 0.95, 1.0))).verdict == AGREES


def test_a_wide_band_decides_a_bound_only_from_one_side_of_it():
    wide = results(rope=(0.5, 0.7, 0.9) * 2)
    for value, verdict in ((0.4, AGREES), (0.6, OPEN), (0.91, OPEN), (0.95, DIFFERS)):
        assert one(Published("copy", "rope", value, "x", relation="at least"), wide).verdict == verdict


def test_an_order_of_four_runs_is_open_and_says_how_many_it_needs():
    few = one(Order("copy", "rope", "alibi", "x"), results(rope=(0.9,) * 4, alibi=(0.3,) * 4))
    assert few.verdict == OPEN and few.needs == 6 and few.p is None
    assert few.reason == "n too small: 4 pairs of runs, and an order needs 6"
    enough = one(Order("copy", "rope", "alibi", "x"), results(rope=(0.9,) * 6, alibi=(0.3,) * 6))
    assert enough.verdict == AGREES and enough.p == pytest.approx(2 / 2**6) and enough.needs is None


@pytest.mark.parametrize(
    ("rope", "alibi"), [((0.19,) * 6, (0.15,) * 6), ((0.21, 0.2, 0.2, 0.2, 0.2, 0.24), (0.17,) * 6)]
)
def test_an_order_among_runs_at_the_floor_is_noise(rope, alibi):
    """A guess gets 0.2. Either is ahead in every seed, of which in the second case one is lucky."""
    found = one(Order("copy", "rope", "alibi", "x"), results(rope=rope, alibi=alibi))
    assert found.verdict == UNINFORMATIVE and "clear of the baseline, 0.20" in found.reason


def test_two_schemes_at_the_ceiling_are_equal_and_not_undecided():
    found = one(Order("copy", "rope", "alibi", "x"), results(rope=(1.0,) * 6, alibi=(0.995,) * 6))
    assert (found.verdict, found.cause) == (OPEN, "ceiling")
    lower = one(Order("copy", "rope", "alibi", "x"), results(rope=(0.9,) * 6, alibi=(0.895,) * 6))
    assert (lower.verdict, lower.cause, lower.reason) == (OPEN, "equal", "they are equal within 0.01")


@pytest.mark.parametrize("above", range(10))
def test_the_sign_test_is_the_binomial_test(above):
    gaps = [1.0] * above + [-0.5] * (9 - above) + [0.0] * 3
    assert sign_test(gaps) == pytest.approx(binomtest(above, 9).pvalue)
    assert sign_test([0.0] * 6) == 1.0


def rate(error, claimed, rows=100_000, n=6):
    found = made.results("x", [record("rope", [1 - e for e in (error if n is None else (error,) * n)], rows=rows)])
    return one(Published("copy", "rope", claimed, "x", scale="log"), found)


def test_an_error_rate_three_times_as_high_differs_though_accuracies_agree():
    """0.994 and 0.982 are within 0.02 of one another; 0.018 is three times 0.006."""
    accuracies = one(Published("copy", "rope", 0.994, "x"), results(rope=(0.982,) * 4))
    assert accuracies.verdict == AGREES, "what this rule is for"
    for error, verdict in ((0.018, DIFFERS), (0.013, DIFFERS), (0.012, AGREES), (0.003, AGREES), (0.002, DIFFERS)):
        found = rate(error, 0.006)
        assert found.verdict == verdict and found.ours.median == pytest.approx(error)


def test_no_error_is_a_bound_from_the_number_of_examples():
    """Of 300 examples without an error, rates below 0.00994 do so in more than one case of twenty."""
    assert unseen(300) == pytest.approx(0.00994, abs=1e-5)
    for examples in (1, 10, 300, 10_000):
        assert binom.pmf(0, examples, unseen(examples)) == pytest.approx(0.05)
    assert unseen(0) == 1.0
    assert rate(0.0, 0.1, rows=300).verdict == DIFFERS, "at most 0.01, and 0.1 was published"
    fine = rate(0.0, 0.006, rows=300)
    assert fine.verdict == OPEN and "too coarse for 0.006" in fine.reason
    assert rate(0.0, 0.006, rows=10_000).verdict == DIFFERS


def test_a_published_rate_of_no_errors_agrees_with_none_of_ours_alone():
    assert rate(0.0, 0.0).verdict == AGREES and rate(0.0, 0.0, rows=300).unseen == pytest.approx(0.00994, abs=1e-5)
    assert rate(0.002, 0.0).verdict == DIFFERS
    some = rate((0.0, 0.0, 0.0, 0.2), 0.0, n=None)
    assert some.verdict == OPEN and "0.2" in some.reason


def test_error_rates_that_span_orders_of_magnitude_are_open():
    """A factor of four is allowed, from the bound on where there is no error."""
    assert rate((0.002, 0.004, 0.007), 0.004, n=None).verdict == AGREES
    assert rate((0.002, 0.004, 0.009), 0.004, n=None).verdict == OPEN
    assert rate((0.0, 0.01, 0.01), 0.01, rows=1000, n=None).verdict == AGREES, "0.003 to 0.01"
    assert rate((0.0, 0.01, 0.02), 0.01, rows=1000, n=None).verdict == OPEN


def test_the_bound_of_no_error_does_not_widen_a_rate_that_was_measured():
    """0.001 was measured; 100 examples without an error would leave 0.03."""
    assert rate(0.001, 0.04, rows=100).verdict == DIFFERS
    assert rate((0.0, 0.001, 0.001), 0.001, rows=100, n=None).verdict == AGREES


def test_an_error_rate_at_a_guess_needs_a_control():
    """A guess is wrong in 0.8 of the cases."""
    assert rate(0.8, 0.8).verdict == UNINFORMATIVE and rate(0.8, 0.8).explained
    assert not rate(0.3, 0.3).explained


def test_our_own_prediction_is_not_counted_as_published():
    ours = Order("copy", "rope", "alibi", "distances do not change", origin="ours")
    found = findings([ours, Published("copy", "rope", 0.9, "x")], results(rope=(0.9,) * 6, alibi=(0.3,) * 6))
    counts = count_verdicts(found)
    assert counts["published"][AGREES] == counts["ours"][AGREES] == 1
    for source in ("ours: distances do not change", "arithmetic: of a set", "Our own guess", "prediction"):
        with pytest.raises(ValueError, match="not a publication; give origin='ours'"):
            dataclasses.replace(ours, source=source, origin="published")
    assert Published("copy", "rope", 0.9, "Oursland et al. (2020)")


def by_rate(**schemes):
    """Scheme to learning rate to the value of each of six seeds, or of all; None diverges."""
    records = []
    for scheme, rates in schemes.items():
        trials = []
        for lr, values in rates.items():
            for seed, value in enumerate(values if isinstance(values, tuple) else (values,) * 6):
                curve = {} if value is None else {8: value, 16: value, 24: value, 32: value}
                outcome = "diverged" if value is None else "done"
                trials.append(
                    made.trial(scheme, "copy", seed, curve, lr, outcome, validation={} if not curve else None)
                )
        records.append(made.record(scheme, "none", "copy", trials))
    return made.results("x", records)


BOTH_SOLVE_AT_THE_BEST = {"pre": {1e-3: 1.0, 1e-2: 1.0, 1e-1: None}, "post": {1e-3: 1.0, 1e-2: 0.2, 1e-1: None}}
RATE = Order("copy", "pre", "post", "x", over="trained", about="rate")


def test_choosing_the_best_rate_does_not_delete_an_order_of_rates():
    """Both solve the task at 1e-3. At 1e-2 one is at the floor, 0.2, and at 1e-1 both diverge."""
    found = by_rate(**BOTH_SOLVE_AT_THE_BEST)
    assert one(dataclasses.replace(RATE, about="score"), found).verdict == OPEN, "what this rule is for"
    rates = one(RATE, found)
    assert (rates.verdict, rates.rates) == (AGREES, (1e-2, 1e-3)) and rates.p == pytest.approx(2 / 2**6)
    assert one(dataclasses.replace(RATE, first="post", second="pre"), found).verdict == DIFFERS


def test_the_largest_stable_rate_is_of_each_seed_and_the_least_of_them_is_shown():
    """One seed of six fails at 1e-2: it is equal, the others are one step ahead, so the order is not decided."""
    found = by_rate(pre={1e-3: 1.0, 1e-2: (1.0,) * 5 + (None,)}, post={1e-3: 1.0, 1e-2: None})
    rates = one(RATE, found)
    assert (rates.ours.low, rates.ours.median, rates.ours.high) == (0, 1, 1)
    assert (rates.verdict, rates.cause, rates.rates) == (OPEN, "undecided", (1e-3, 1e-3))


def test_an_order_of_rates_needs_rates_at_which_one_fails():
    top = by_rate(pre={1e-3: 1.0, 1e-2: 1.0}, post={1e-3: 1.0, 1e-2: 1.0})
    assert one(RATE, top).reason == "all runs of both learn at the largest rate tried"
    single = by_rate(pre={1e-3: 1.0}, post={1e-3: 1.0})
    assert (one(RATE, single).verdict, one(RATE, single).cause) == (OPEN, "few")
    other = by_rate(pre={1e-3: 1.0, 1e-2: 1.0}, post={1e-3: 1.0, 3e-3: 1.0})
    assert "the same learning rates" in one(RATE, other).reason
    dead = by_rate(pre={1e-3: 0.2, 1e-2: 0.2}, post={1e-3: 0.1, 1e-2: None})
    assert one(RATE, dead).verdict == UNINFORMATIVE


def test_a_metric_that_a_record_did_not_count_is_not_taken_for_zero():
    """These records count `last`, and not `beyond`."""
    found = results(rope=(0.9,) * 6, alibi=(0.3,) * 6)
    for claim in (Published("copy", "rope", 0.0, "x", metric="beyond"), Order("copy", "rope", "alibi", "x", "beyond")):
        asked = one(claim, found)
        assert asked.verdict == NOT_RUN and "did not count 'beyond'; train again" in asked.reason
    assert Evidence(found).uncounted(Published("copy", "rope", 0.0, "x").measure) is False


def test_nor_is_it_where_only_other_schemes_counted_it():
    rope, alibi = record("rope", (0.9,) * 6), record("alibi", (0.3,) * 6)
    for trial in alibi["trials"]:
        for counts in trial["evaluations"].values():
            del counts["last"]
    found = one(Published("copy", "alibi", 0.0, "x", metric="last"), made.results("x", [rope, alibi]))
    assert (found.verdict, found.reason) == (NOT_RUN, "the record holds no such run")


def test_the_last_token_has_floors_of_its_own_where_they_were_counted():
    rec = record("rope", (0.9,) * 3)
    rec["task"]["floors_last"] = {n: {"uniform": 0.1, "bag": 0.55} for n in rec["task"]["floors"]}
    for trial in rec["trials"]:
        for counts in trial["evaluations"].values():
            counts["last"] = 55
    found = one(Published("copy", "rope", 0.55, "x", metric="last"), made.results("x", [rec]))
    assert (found.floor, found.verdict, found.ours.median) == (0.55, UNINFORMATIVE, pytest.approx(0.55))
