"""One set of sizes for what is compared, though a scheme was trained further on longer texts than its neighbours."""

import itertools

import pytest

from posenc.lab.results.published import ALL
from posenc.lab.results.reproduction import AGREES, DIFFERS, NOT_RUN, OPEN
from posenc.lab.results.sizes import shared
from posenc.lab.results.statistics import compare
from posenc.lab.results.verdicts import findings
from tests.lab import made
from tests.lab.seen import Order, Published

LONGER = "rope, then pi, length=32"
FAR = {48: 0.5, 64: 0.5}
"""Beyond what either was trained on both are alike."""
CURVES = {"rope": {8: 1.0, 16: 1.0, 24: 0.8, 32: 0.8} | FAR, LONGER: {16: 1.0, 24: 1.0, 32: 1.0} | FAR}
TRAINED = {LONGER: (8, 32)}


def results(curves=CURVES, task="copy", metric="token", seeds=6):
    recs = []
    for label, curve in curves.items():
        trained = TRAINED.get(label, (4, 16))
        trials = [made.trial(label, task, seed, curve) for seed in range(seeds)]
        recs.append(made.record(label, "rotary", task, trials, sizes=curve, trained=trained))
        recs[-1]["task"] |= {"metric": metric, "first_beyond": trained[1]}
        if metric == "beyond":
            for counts in (counts for trial in trials for counts in trial["evaluations"].values()):
                counts |= {"beyond": counts["correct"], "beyond_scored": counts["scored"]}
    return made.results("x", recs)


def one(claim, found=None):
    (only,) = findings([claim], found or results())
    return only


def test_an_order_of_two_that_trained_on_other_lengths_is_on_the_sizes_beyond_both():
    """Each on its own sizes, rope would have 0.65 against 0.5; both from 24 on, 0.65 against 0.75."""
    for first, second in itertools.permutations(CURVES):
        found = one(Order("copy", first, second, "x"))
        assert (found.verdict, found.cause, found.ours.median) == (OPEN, "equal", 0.0)


def test_a_number_is_on_these_sizes_too_and_so_is_its_floor():
    assert one(Published("copy", "rope", 0.5, "x", tolerance=0.0)).verdict == AGREES
    recs = [made.written(record) for record in results().records]
    for rec in recs:
        rec["task"]["floors"] |= {str(n): {"uniform": 0.4} for n in FAR}
    found = one(Published("copy", "rope", 0.5, "x"), made.results("x", recs))
    assert found.floor == pytest.approx(0.4) and found.published.over == "beyond", "as the claim says it"


def test_trained_sizes_are_those_within_both_ranges():
    """16 alone, from 8 to 16, since the other was not evaluated at 8."""
    curves = CURVES | {"rope": CURVES["rope"] | {8: 0.0}}
    said = Published("copy", "rope", 0.8, "x", over="trained", tolerance=0.0)
    found = one(said, results(curves))
    assert found.verdict == DIFFERS and found.ours.median == 0.5, "a number of rope alone is at all of its own within"
    assert one(Order("copy", "rope", LONGER, "x", over="trained"), results(curves)).cause == "ceiling"


def test_sizes_that_are_given_stay():
    for over, gap in (((24,), 0.2), ((24, 48), 0.1)):
        found = one(Order("copy", LONGER, "rope", "x", over=over))
        assert found.verdict == AGREES and found.ours.median == pytest.approx(gap)


APART = {"rope": {8: 1.0, 16: 1.0, 24: 0.8, 32: 0.8}, LONGER: {16: 1.0, 32: 1.0, 48: 0.5}}


def test_without_a_shared_size_nothing_is_compared_and_one_sentence_says_why():
    found = [
        one(claim, results(APART))
        for claim in (Order("copy", "rope", LONGER, "x"), Published("copy", "rope", 0.8, "x"))
    ]
    for it in found:
        assert (it.verdict, it.cause) == (NOT_RUN, "unshared") and it.ours.n == 0
        assert it.reason == "no size beyond all sizes trained on was evaluated in all runs that are compared"
    assert one(Published("copy", LONGER, 0.5, "x"), results(APART)).verdict == AGREES
    for claim in (
        Published("copy", "nope", 0.5, "x"),
        Order("copy", "nope", LONGER, "x"),
        Order(ALL, "rope", LONGER, "x"),
    ):
        assert one(claim, results(APART)).reason == "the record holds no such run"


def test_by_the_metric_beyond_places_must_be_the_same_too():
    """At 64 the one counts the tokens from 16 on, and the other those from 32 on."""
    claim = Order("copy", "rope", LONGER, "x", metric="beyond", over=(64,))
    found = one(claim, results(metric="beyond"))
    assert (found.verdict, found.cause) == (NOT_RUN, "unshared")
    assert found.reason == "'beyond' counts the tokens from 16 or 32 on, as each run was trained"
    assert one(Order("copy", "rope", LONGER, "x", metric="last", over=(64,)), results(metric="beyond")).cause == "equal"
    with pytest.raises(ValueError, match="cannot be compared on copy: 'beyond' counts .* from 16 or 32 on"):
        compare(results(metric="beyond"), "rope", LONGER)


@pytest.mark.parametrize(
    ("over", "trained", "measured", "found"),
    [
        ("beyond", [(4, 16)], [(8, 24, 32)], (24, 32)),
        ("beyond", [(4, 16), (4, 24)], [(24, 32), (8, 24, 32, 64)], (32,)),
        ("trained", [(4, 16), (8, 32)], [(4, 8, 16, 24), (8, 12, 16)], (8, 16)),
        ("trained", [(4, 8), (16, 32)], [(4, 8, 16)], ()),
        ("beyond", [], [], ()),
    ],
)
def test_shared_sizes_by_hand(over, trained, measured, found):
    assert shared(over, trained, measured) == found
