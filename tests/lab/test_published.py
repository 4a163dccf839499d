"""A verdict is a rule: our interval, the tolerance, and what was published, each moved across the edge by hand."""

import numpy as np
import pytest
from scipy.stats import binomtest

from posenc.lab.results import published
from posenc.lab.results.reproduction import AGREES, BOTH, DIFFERS, NOT_RUN, OPEN, VERDICTS
from posenc.lab.results.statistics import summary
from posenc.lab.results.verdicts import count_verdicts, findings
from tests.lab import made
from tests.lab.seen import Order, Published
from tests.lab.test_false_agreements import FLAT, one, results


@pytest.mark.parametrize(
    ("value", "verdict"), [(0.46, AGREES), (0.459, DIFFERS), (0.5, AGREES), (0.54, AGREES), (0.541, DIFFERS)]
)
def test_a_number_agrees_within_the_interval_widened_by_the_tolerance(value, verdict):
    found = one(Published("copy", "rope", value, "x", tolerance=0.02), results(rope=(0.48, 0.5, 0.52) * 2))
    assert (found.verdict, found.ours.n, found.ours.low, found.ours.high) == (verdict, 6, 0.48, 0.52)
    assert bool(found.reason) == (verdict == DIFFERS)


def test_from_eight_runs_on_the_interval_of_the_median_leaves_the_ends_out():
    """Order statistics: the second and the seventh of eight hold the median with 93 %, the ends with 99 %; of nine,
    the second and the eighth with 96 %."""
    values = [0.1, *np.linspace(0.4, 0.6, 7), 0.9]
    found = one(Published("copy", "rope", 0.9, "x", tolerance=0.02), results(rope=values))
    assert found.verdict == DIFFERS and (found.ours.low, found.ours.high) == (0.4, 0.6)
    assert one(Published("copy", "rope", 0.9, "x"), results(rope=(0.86, 0.88, 0.9))).verdict == AGREES


@pytest.mark.parametrize(
    ("relation", "value", "verdict"),
    [
        ("at least", 0.54, AGREES),
        ("at least", 0.55, DIFFERS),
        ("at least", 0.25, AGREES),
        ("at most", 0.46, AGREES),
        ("at most", 0.45, DIFFERS),
        ("at most", 0.9, AGREES),
    ],
)
def test_a_bound_agrees_where_the_widened_interval_reaches_it(relation, value, verdict):
    said = Published("copy", "rope", value, "x", relation=relation)
    assert one(said, results(rope=(0.48, 0.5, 0.52) * 2)).verdict == verdict


def test_the_best_of_their_runs_is_held_against_the_best_of_ours_at_every_rate_beside_our_median():
    """The chosen rate is that of the better validation; the best test value is at the other one."""
    low = [made.trial("rope", "copy", s, FLAT | {24: v, 32: v}, lr=1e-3) for s, v in enumerate((0.3, 0.4, 0.35) * 2)]
    poor = {8: 0.9, 16: 0.9}
    high = [made.trial("rope", "copy", s, poor | {24: v, 32: v}, lr=1e-2) for s, v in enumerate((0.7, 0.8, 0.75) * 2)]
    found = made.results("x", (made.record("rope", "rotary", "copy", low + high),))
    best = one(Published("copy", "rope", 0.8, "x", tolerance=0.0, of="best", runs=30), found)
    assert best.verdict == AGREES and (best.best, best.best_of) == (pytest.approx(0.8), 12)
    assert best.ours == summary((0.3, 0.4, 0.35) * 2), "median, interval and n of the chosen rate"
    assert one(Published("copy", "rope", 0.35, "x", tolerance=0.0, of="best"), found).verdict == DIFFERS
    assert one(Published("copy", "rope", 0.77, "x", of="best"), found).verdict == DIFFERS
    median = one(Published("copy", "rope", 0.39, "x", tolerance=0.03), found)
    assert median.verdict == AGREES and median.ours == best.ours and median.best is median.best_of is None


UNEVEN = {20: 0.9, 24: 0.5, 64: 0.1}
"""By the trapezoid rule (4 · 0.7 + 40 · 0.3) / 44 = 0.336…, where the plain mean is 0.5."""


def uneven(**drops):
    """Six equal seeds at three uneven sizes beyond training, with floors that fall from 0.3 to 0.1 between them."""
    made_of = []
    for name, drop in drops.items():
        curve = FLAT | {n: v - drop for n, v in UNEVEN.items()}
        trials = [made.trial(name, "copy", seed, curve) for seed in range(6)]
        made_of.append(made.record(name, "none", "copy", trials, sizes=curve))
        for n, floor in {20: 0.3, 24: 0.3, 64: 0.1}.items():
            made_of[-1]["task"]["floors"][str(n)] = {"uniform": 0.1, "prior": 0.1, "position": floor}
    return made_of


def test_a_mean_over_every_size_is_held_against_the_trapezoid_rule_over_those_evaluated():
    """Each value by hand; the floor, (4 · 0.3 + 40 · 0.2) / 44, by the rule of its row."""
    found = made.results("x", uneven(rope=0.0))
    for over in ("beyond", (64, 20, 24)):
        whole = one(Published("copy", "rope", 0.34, "x", weights="trapezoid", over=over), found)
        plain = one(Published("copy", "rope", 0.34, "x", over=over), found)
        assert whole.ours.median == pytest.approx(14.8 / 44) and whole.floor == pytest.approx(9.2 / 44)
        assert plain.ours.median == pytest.approx(0.5) and plain.floor == pytest.approx(0.7 / 3)
        assert (whole.verdict, plain.verdict) == (AGREES, DIFFERS)


def test_of_one_size_every_rule_gives_the_value():
    for rule in ("equal", "trapezoid"):
        found = one(Published("copy", "rope", 0.5, "x", over=(24,), weights=rule), made.results("x", uneven(rope=0.0)))
        assert found.ours.median == pytest.approx(0.5)


def test_an_order_is_by_the_rule_that_it_names():
    """Alibi gains at 20 and loses less at 64: below rope in the mean over every size, above in the plain one."""
    records = uneven(rope=0.0, alibi=0.0)
    for trial in records[1]["trials"]:
        for n, value in ((20, 1.0), (64, 0.04)):
            trial["evaluations"][str(n)]["correct"] = round(1000 * value)
    found = made.results("x", records)
    assert one(Order("copy", "rope", "alibi", "x", weights="trapezoid"), found).verdict == AGREES
    assert one(Order("copy", "rope", "alibi", "x"), found).verdict == DIFFERS


@pytest.mark.parametrize(
    ("second", "verdict"),
    [
        ((0.3, 0.4, 0.5) * 2, AGREES),
        ((0.5, 0.6, 0.7) * 2, DIFFERS),
        ((0.3, 0.5, 0.7) * 2, OPEN),
        ((0.395, 0.495, 0.595) * 2, OPEN),  # by less than the tolerance
    ],
)
def test_an_order_is_paired_by_seed_and_open_where_the_interval_holds_both(second, verdict):
    """Unpaired, the ranges overlap in all four."""
    first = (0.4, 0.5, 0.6) * 2
    found = one(Order("copy", "rope", "alibi", "x"), results(rope=first, alibi=second))
    assert found.verdict == verdict and found.ours.n == 6 and bool(found.reason) == (verdict != AGREES)
    gaps = np.subtract(first, second)
    np.testing.assert_allclose((found.ours.low, found.ours.high), (gaps.min(), gaps.max()), atol=1e-12)
    signs = gaps[np.abs(gaps) > 1e-12] > 0
    assert found.p == pytest.approx(binomtest(int(signs.sum()), len(signs)).pvalue)


def test_seeds_that_one_of_two_schemes_lacks_make_no_pair():
    found = one(Order("copy", "rope", "alibi", "x"), results(rope=(0.9,) * 7, alibi=(0.1,)))
    assert found.ours.n == 1 and (found.verdict, found.needs) == (OPEN, 6)


def test_what_no_record_holds_is_not_run():
    said = [
        Published("copy", "nope", 0.5, "x"),
        Order("copy", "rope", "nope", "x"),
        Published("sort", "rope", 0.5, "x"),
    ]
    for found in (None, results(rope=(0.5,))):
        assert [f.verdict for f in findings(said, found)] == [NOT_RUN] * 3
    none = dict.fromkeys(VERDICTS, 0)
    assert count_verdicts(findings(said, None)) == {"published": none | {"not run": 3}, "ours": none}


def test_a_size_that_was_not_measured_is_not_run():
    assert one(Published("copy", "rope", 0.5, "x", over=(24, 100)), results(rope=(0.5,) * 3)).verdict == NOT_RUN
    assert one(Published("copy", "rope", 0.5, "x", over=(24,)), results(rope=(0.5,) * 3)).verdict == AGREES


def test_whole_answers_are_another_measure_than_tokens():
    """100 rows, of which `exact` are wholly right: here as many as tokens; halved by hand, they differ."""
    trials = [made.trial("rope", "copy", seed, FLAT | {24: 0.8, 32: 0.8}) for seed in range(3)]
    for trial in trials:
        for size in ("24", "32"):
            trial["evaluations"][size]["exact"] = 40
    found = made.results("x", (made.record("rope", "rotary", "copy", trials),))
    assert one(Published("copy", "rope", 0.4, "x", metric="exact", tolerance=0.0), found).verdict == AGREES
    assert one(Published("copy", "rope", 0.8, "x", tolerance=0.0), found).verdict == AGREES


def test_a_diverged_run_counts_as_a_guess():
    gone = [made.trial("rope", "copy", seed, {}, outcome="diverged", validation={}) for seed in range(3)]
    right = [made.trial("alibi", "copy", seed, FLAT | {24: 0.9, 32: 0.9}) for seed in range(3)]
    records = made.record("rope", "rotary", "copy", gone), made.record("alibi", "linear", "copy", right)
    found = made.results("x", records)
    assert one(Published("copy", "rope", made.FLOORS["uniform"], "x", tolerance=0.0), found).verdict == BOTH
    assert one(Published("copy", "rope", 0.0, "x", metric="exact", tolerance=0.0), found).verdict == BOTH


def test_what_a_guess_without_the_tokens_gets_explains_a_number():
    """The best floor of the made-up task is that of position, 0.2; how near to it counts is the claim's to say."""
    for value, tolerance, explained in ((0.1, 0.02, True), (0.22, 0.02, True), (0.23, 0.02, False), (0.23, 0.05, True)):
        said = Published("copy", "rope", value, "x", tolerance=tolerance)
        assert one(said, results(rope=(0.5,))).explained is explained
    assert not one(Published("copy", "rope", 0.1, "x", relation="at most"), results(rope=(0.5,))).explained
    assert not one(Published("copy", "rope", 0.1, "x"), None).explained
    for found in (None, results(rope=(0.5,))):  # a floor that is known at their sizes stands for ours
        assert one(Published("copy", "rope", 0.9, "x", floor=0.9), found).explained
        assert one(Published("copy", "rope", 0.2, "x", floor=0.1), found).floor == 0.1


NUMBER = {"task": "copy", "scheme": "rope", "value": 0.5, "source": "x"}
ORDER = {"task": "copy", "first": "rope", "second": "alibi", "source": "x"}


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        (Published, {"value": 93.0}, "shares are from 0 to 1"),
        (Published, {"tolerance": -0.1}, "shares are from 0 to 1"),
        (Published, {"of": "best", "relation": "at least"}, "a bound"),
        (Published, {"weights": "simpson"}, "'simpson' weights no sizes"),
        (Published, {"scale": "ln"}, "'ln' is not a scale"),
        (Published, {"scale": "log", "of": "best"}, "a number of one task"),
        (Published, {"source": " "}, "has no source; give the publication"),
        (Published, {"seen": "blog"}, "was seen in 'blog'; give seen="),
        (Published, {"over": "trainde"}, "give 'beyond', 'trained' or a tuple"),
        (Published, {"relation": "atmost"}, "'atmost' is not a relation"),
        (Published, {"of": "bset"}, "'bset' is not a statistic"),
        (published.Published, {}, "^The claim of 0.5 for 'rope' on 'copy' does not say wh"),
        (published.Order, {}, "seen; give seen='paper' or 'copy' or 'memory'.$"),
        (Order, {"source": ""}, "has no source; give the publication"),
        (Order, {"source": "", "origin": "ours"}, "has no source; give the reason"),
        (Order, {"origin": "theirs"}, "'theirs' is not an origin"),
        (Order, {"seen": ""}, "was seen in ''; give seen="),
        (Order, {"origin": "ours", "seen": "copy"}, "is ours and was seen nowhere; leave"),
        (Order, {"about": "speed"}, "'speed' cannot be ordered"),
        (Order, {"second": "rope"}, "above itself"),
        (Order, {"tolerance": -1.0}, "a share from 0 to 1"),
        (Order, {"metric": "lasst"}, "'lasst' is not a metric"),
        (Order, {"weights": "simpson"}, "give 'equal' or 'trapezoid'"),
    ],
)
def test_what_nobody_can_have_published_is_refused(kind, change, said):
    usual = NUMBER if kind.__name__ == "Published" else ORDER
    with pytest.raises(ValueError, match=said):
        kind(**usual | change)


def test_claims_are_counted_by_where_they_were_seen_and_ours_are_seen_nowhere():
    said = [Published("copy", "rope", 0.5, "x", seen=seen) for seen in ("memory", "paper", "memory")]
    ours = Order("copy", "rope", "alibi", "because", origin="ours")
    assert ours.seen is None
    assert published.count_seen([*said, ours]) == {"paper": 1, "copy": 0, "memory": 2}
