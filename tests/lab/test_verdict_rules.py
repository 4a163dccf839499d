"""Rules by which a verdict shows something."""

import dataclasses
import itertools

import pytest

from posenc.lab.cli import claims
from posenc.lab.results import table
from posenc.lab.results.evidence import Evidence
from posenc.lab.results.orders import by_chance
from posenc.lab.results.published import ALL
from posenc.lab.results.reproduction import AGREES, BOTH, DIFFERS, NOT_ATTEMPTED, NOT_RUN, OPEN, UNINFORMATIVE
from posenc.lab.results.statistics import summary
from posenc.lab.results.verdicts import count_verdicts, findings, orders_by_chance
from tests.lab import made
from tests.lab.seen import Order, Published

VERDICTS, NUMBERS, ORDERS = (f"posenc.lab.results.{name}" for name in ("verdicts", "numbers", "orders"))
EVIDENCE, RANKS = (f"posenc.lab.results.{name}" for name in ("evidence", "reciprocal_ranks"))
LEARNED = {8: 1.0, 16: 1.0}


def record(scheme, beyond, trained=None, n=6, rows=100, task="copy", floors=None, losses=None):
    """Some equal seeds: shares at the sizes trained on, and one at both sizes beyond them."""
    curve = (LEARNED if trained is None else trained) | {24: beyond, 32: beyond}
    trials = [made.trial(scheme, task, seed, curve, rows=rows) for seed in range(n)]
    for trial in trials if losses is not None else ():
        trial["curve"] = losses and {"step": [100, 200, 300, 400], "loss": losses}
    found = made.record(scheme, "none", task, trials)
    found["task"]["floors"] = {n: made.FLOORS if floors is None else floors for n in found["task"]["floors"]}
    return found


def one(claim, *records):
    (only,) = findings([claim], made.results("x", records))
    return only


CONTROL = record("rope", 0.9)


def test_runs_at_a_floor_do_not_agree_with_what_is_no_guess():
    """Ours have 0.23 where a guess has 0.2, and 0.27 was published: within the tolerance of 0.05."""
    for of in ("median", "best"):
        claim = Published("copy", "nope", 0.27, "x", tolerance=0.05, of=of)
        found = one(claim, record("nope", 0.23), CONTROL)
        assert (found.verdict, found.cause) == (OPEN, "unlearned") and "the baseline, 0.20" in found.reason
        assert one(claim, record("nope", 0.23, rows=10_000), CONTROL).verdict == AGREES, "clear of the floor by 0.0085"


HALF = {8: 1.0, 16: 0.7}
"""Not learned: 0.85 on average, and 0.7 at the larger of two sizes trained on."""


@pytest.mark.parametrize(("ours", "claimed"), [(0.3, 0.9), (0.3, 0.3), (0.3, 0.31)])
def test_a_number_beyond_training_is_not_held_against_runs_that_have_not_learned_it(ours, claimed):
    claim = Published("copy", "nope", claimed, "x")
    found = one(claim, record("nope", ours, HALF, rows=10_000))
    assert (found.verdict, found.cause) == (OPEN, "untrained")
    assert found.reason == "nope has not learned the sizes trained on: 0.70 at 16, below 0.9"
    decided = DIFFERS if claimed == 0.9 else AGREES
    assert one(claim, record("nope", ours, rows=10_000)).verdict == decided
    other = dataclasses.replace(claim, learned=False)
    assert one(other, record("nope", ours, HALF, rows=10_000)).verdict == decided, "theirs had not"


def test_runs_that_are_ahead_of_a_number_need_not_have_learned():
    assert one(Published("copy", "nope", 0.4, "x"), record("nope", 0.6, HALF)).verdict == DIFFERS
    at_least = Published("copy", "nope", 0.5, "x", relation="at least")
    assert one(at_least, record("nope", 0.6, HALF)).verdict == AGREES


def test_a_number_at_the_sizes_trained_on_says_itself_whether_theirs_had_learned():
    """A mean of 0.85 is held against 0.95, which was learned, and against 0.8 and 0.6, which were not."""
    for claimed, verdict in ((0.95, OPEN), (0.6, DIFFERS), (0.86, AGREES)):
        assert (
            one(Published("copy", "nope", claimed, "x", over="trained"), record("nope", 0.3, HALF)).verdict == verdict
        )


def test_an_order_is_not_decided_by_a_scheme_that_is_behind_because_it_has_not_learned():
    slow, far = record("nope", 0.3, HALF), record("rope", 0.9)
    for first, second, verdict in (("nope", "rope", DIFFERS), ("rope", "nope", AGREES)):
        order = Order("copy", first, second, "x")
        assert one(order, record("nope", 0.3), far).verdict == verdict
        assert (one(order, slow, far).verdict, one(order, slow, far).cause) == (OPEN, "untrained")
        assert one(order, record("nope", 0.3), record("rope", 0.9, HALF)).verdict == verdict, "ahead, although"


def test_an_order_at_the_sizes_trained_on_says_itself_that_its_second_has_not_learned():
    slow, fast = record("nope", 0.3, HALF), record("rope", 0.9)
    assert one(Order("copy", "rope", "nope", "x", over="trained"), slow, fast).verdict == AGREES
    assert one(Order("copy", "nope", "rope", "x", over="trained"), slow, fast).cause == "untrained"


@pytest.mark.parametrize("over", ["beyond", "trained"])
def test_a_prediction_of_ours_is_not_decided_either_by_runs_that_have_not_learned(over):
    """That the slow one is ahead was refuted by too short a training; that it cannot learn is a prediction of that."""
    slow, fast = record("nope", 0.3, HALF), record("rope", 0.9)
    order = Order("copy", "nope", "rope", "because", over=over, origin="ours")
    assert (one(order, slow, fast).verdict, one(order, slow, fast).cause) == (OPEN, "untrained")
    assert one(dataclasses.replace(order, learned=False), slow, fast).verdict == DIFFERS
    behind = Order("copy", "rope", "nope", "because", over=over, origin="ours")
    assert one(behind, slow, fast).verdict == (AGREES if over == "trained" else OPEN)
    number = Published("copy", "nope", 0.95, "because", over=over, origin="ours")
    assert one(number, slow).cause == "untrained"


@pytest.mark.parametrize(("ours", "claimed"), [(0.05, 0.19), (0.19, 0.05), (0.1, 0.1)])
def test_two_numbers_at_a_floor_neither_agree_nor_differ(ours, claimed):
    """A guess has 0.2; in two cases the numbers are 0.14 apart, and the tolerance is 0.02."""
    found = one(Published("copy", "nope", claimed, "x"), record("nope", ours), CONTROL)
    assert (found.verdict, found.explained) == (BOTH, True)
    assert one(Published("copy", "nope", claimed, "x"), record("nope", ours)).verdict == UNINFORMATIVE


def test_a_prediction_of_ours_that_something_stays_a_guess_comes_true():
    claim = Published("copy", "nope", 0.2, "no order in a set", origin="ours")
    assert one(claim, record("nope", 0.2), CONTROL).verdict == AGREES


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"), [(1.0, 1.0, AGREES), (0.6, 0.75, AGREES), (0.75, 0.75, DIFFERS)]
)
def test_numbers_are_compared_by_what_they_have_of_what_a_floor_leaves(ours, theirs, verdict):
    """Their floor is 0.5 and ours 0.2: 0.75 is half of the rest there, and 0.6 is half of it here."""
    claim = Published("copy", "nope", theirs, "x", floor=0.5)
    assert one(claim, record("nope", ours)).verdict == verdict


def test_an_order_is_of_what_is_above_the_floors():
    """0.25 over 0.1 with a tolerance of 0.1, where a guess has 0.2: below it nothing is learned, be it ever so low."""
    order = Order("copy", "rope", "nope", "x", tolerance=0.1)
    found = one(order, record("rope", 0.25, rows=10_000), record("nope", 0.1, rows=10_000))
    assert (found.verdict, found.cause) == (OPEN, "equal") and found.ours.median == pytest.approx(0.05)


@pytest.mark.parametrize(("share", "verdict"), [(0.06, BOTH), (0.0, UNINFORMATIVE)])
def test_a_control_is_clear_of_a_floor_by_the_error_of_the_test_set(share, verdict):
    """Of whole answers, of which a guess has none: 0.06 of 200 rows is clear, though the claim's tolerance is 0.1."""
    none = {"uniform": 1e-9}
    claim = Published("copy", "nope", 0.02, "x", tolerance=0.1)
    assert one(claim, record("nope", 0.0, floors=none), record("rope", share, floors=none)).verdict == verdict


@pytest.mark.parametrize(
    ("over", "rule", "rows"),
    [
        ((24,), "trapezoid", 100),
        ((24, 32), "equal", 200),
        ((16, 24, 32), "equal", 300),
        ((16, 24, 32), "trapezoid", 100 / (0.25**2 + 0.5**2 + 0.25**2)),
    ],
)
def test_a_margin_is_three_standard_errors_of_rows_by_the_weights_of_sizes(over, rule, rows):
    """A guess of 0.2 on 100 rows of each size; of a floor of 0, one that is right once in all rows."""
    found = Evidence(made.results("x", [CONTROL, record("nope", 0.0, floors={"uniform": 0.0}, task="sort")]))
    measures = [Published(task, "rope", 0.9, "x", over=over, weights=rule).measure for task in ("copy", "sort")]
    assert found.margin(measures[0], "rope") == pytest.approx(3 * (0.2 * 0.8 / rows) ** 0.5)
    assert found.margin(measures[1], "nope") == pytest.approx(3 * (1 / rows * (1 - 1 / rows) / rows) ** 0.5)


def test_floors_that_a_record_lacks_are_those_of_its_task():
    """An older record without floors loses nothing to one with them, in either order."""
    old, new = record("nope", 0.75, floors={}), record("rope", 0.85)
    for records in itertools.permutations((old, new, record("alibi", 0.5))):
        assert one(Order("copy", "rope", "nope", "x"), *records).ours.median == pytest.approx(0.1)
        assert one(Order("copy", "nope", "rope", "x"), *records).ours.median == pytest.approx(-0.1)
    new["task"] |= {"first_beyond": 16, "floors_beyond": {n: {"position": 0.4} for n in new["task"]["floors"]}}
    beyond = Published("copy", "nope", 0.5, "x", metric="beyond", over=(24,)).measure
    highest = lambda: Evidence(made.results("x", [old, new])).highest(beyond, "nope")  # noqa: E731
    assert highest() == pytest.approx(0.1), "the guess among all answers: beyond another training no more is known"
    old["task"]["first_beyond"] = 16
    assert highest() == pytest.approx(0.4)


def test_a_diverged_run_is_a_guess_wherever_a_record_of_its_task_knows_that():
    """One older record without floors diverged; its run has 0.1 in verdicts, rows and tables, and 0 alone."""
    old = record("nope", 0.0, n=1, floors={})
    old["trials"] = [made.trial("nope", "copy", 0, {}, outcome="diverged")]
    for records, guess in (([old, CONTROL], 0.1), ([CONTROL, old], 0.1), ([old], 0.0)):
        results = made.results("x", records)
        rows = [row for row in results.rows() if row.scheme == "nope"]
        assert {row.size for row in rows} == set(made.SIZES) and {row.value for row in rows} == {guess}
        measure = Published("copy", "nope", 0.9, "x", over=(24,)).measure
        assert Evidence(results).runs(measure, "nope") == {(1e-3, 0): guess}
        lines = table.table(results)
        assert set(lines[(lines.scheme == "nope") & (lines.metric == "accuracy")].value) == {guess}


def test_a_scheme_at_the_floor_on_every_task_has_no_rank():
    """Two of three schemes are at the floor and share the places 2 and 3; one over 2.5 is 0.4, as was published."""
    dead = [record(scheme, value) for scheme, value in (("nope", 0.2), ("alibi", 0.21))]
    claim = Published(ALL, "nope", 0.4, "x", tolerance=0.15)
    found = one(claim, *dead, CONTROL)
    assert found.verdict == UNINFORMATIVE and "ties have no rank" in found.reason and found.ours.n == 0
    assert one(Published(ALL, "rope", 1.0, "x"), *dead, CONTROL).verdict == AGREES
    live = [record(scheme, 0.8, task="sort") for scheme in ("nope", "alibi", "rope")]
    ranked = one(claim, *dead, CONTROL, *live)
    assert ranked.ours.median == pytest.approx((0.4 + 0.5) / 2), "noise at the floor breaks no tie"


def test_two_schemes_at_the_ceiling_are_told_apart_by_steps_and_not_by_seeds():
    """The loss of 0.95 for a right token is 0.051."""
    order = Order("copy", "rope", "nope", "x")
    soon, late = (record(s, 1.0, losses=of) for s, of in (("rope", [1, 0.05, 0, 0]), ("nope", [1, 0.9, 0.052, 0.05])))
    found = one(order, soon, late)
    assert (found.verdict, found.cause) == (OPEN, "ceiling") and "after 200 and 400 steps" in found.reason
    assert "200 and more than were trained" in one(order, soon, record("nope", 1.0, losses=[1, 1, 1, 1])).reason
    assert "has no curves" in one(order, record("rope", 1.0, losses={}), late).reason
    assert one(order, record("rope", 0.8), record("nope", 0.8)).cause == "equal"


def test_an_order_of_steps_is_of_runs_that_have_all_solved_the_task():
    soon, late = (record(s, 1.0, losses=of) for s, of in (("rope", [1, 0.05, 0, 0]), ("nope", [1, 0.9, 0.052, 0.05])))
    order = Order("copy", "rope", "nope", "x", over="trained", about="steps")
    found = one(order, soon, late)
    assert (found.verdict, found.steps, found.ours.median) == (AGREES, (200, 400), 200)
    assert one(dataclasses.replace(order, first="nope", second="rope"), soon, late).verdict == DIFFERS
    assert one(order, soon, record("nope", 1.0, losses=[1, 0.05, 0, 0])).verdict == OPEN
    never = one(order, soon, record("nope", 1.0, losses=[1, 1, 1, 1]))
    assert (never.verdict, never.steps) == (OPEN, None) and "6 of 6 pairs" in never.reason
    assert one(order, soon, record("nope", 1.0, losses={})).verdict == NOT_RUN


def test_steps_of_a_run_that_goes_on_are_those_after_the_switch():
    """Both solve the task under the first scheme, which counts for nothing; under the second one at once, one late."""
    soon, late = (record(s, 1.0, losses=of) for s, of in (("rope", [0, 0, 0, 0]), ("nope", [0, 0, 1, 0])))
    for found in (soon, late):
        found["run"]["then"] = "0.5 pi(factor=2.0)"
        found["trials"] = [trial | {"steps": 400} for trial in found["trials"]]
    order = Order("copy", "rope", "nope", "x", over="trained", about="steps")
    assert one(order, soon, late).steps == (100, 200)


def test_claims_of_one_fact_are_counted_once():
    """Three orders say the same of the same runs; a fourth claim repeats a number that has no runs here."""
    orders = [Order("copy", "rope", s, "x", fact="rope is ahead") for s in ("nope", "alibi", "t5")]
    other = Order("copy", "nope", "rope", "x", fact="rope is ahead")
    alone = Order("copy", "rope", "nope", "y")
    runs = made.results("x", [CONTROL, *(record(s, 0.5) for s in ("nope", "alibi", "t5"))])
    given = count_verdicts(findings([*orders, other, alone], runs))["published"]
    assert (given[AGREES], given[DIFFERS], sum(given.values())) == (2, 1, 3), "what differs is not hidden"
    here, there = (Published("copy", s, 0.9, "x", fact="a number") for s in ("rope", "rope @ random"))
    for found in ([here, there], [there, here]):
        given = count_verdicts(findings(found, runs))["published"]
        assert (given[AGREES], given[NOT_RUN], sum(given.values())) == (1, 0, 1)
    predicted = dataclasses.replace(here, origin="ours", seen=None)
    assert [sum(given.values()) for given in count_verdicts(findings([here, predicted], runs)).values()] == [1, 1]


def test_what_is_too_dear_to_run_is_apart_from_what_was_not_run_yet():
    claim = Published("copy", "rope", 0.9, "x", fact="a number")
    dear, waiting = findings([claim], None, attempted=False), findings([claim], None)
    assert (dear[0].verdict, dear[0].cause, waiting[0].verdict) == (NOT_ATTEMPTED, "cost", NOT_RUN)
    for both in ((*dear, *waiting), (*waiting, *dear)):
        given = count_verdicts(both)["published"]
        assert (given[NOT_RUN], given[NOT_ATTEMPTED]) == (1, 0), "it may be run elsewhere"


@pytest.mark.parametrize("pairs", range(1, 13))
def test_chance_decides_as_many_orders_as_signs_that_put_the_interval_on_one_side(pairs):
    """Every choice of signs, each as likely where two schemes are equal."""
    every = [summary(signs) for signs in itertools.product((-1.0, 1.0), repeat=pairs)]
    decided = [s for s in every if s.n >= 6 and (s.low > 0 or s.high < 0)]
    assert by_chance(pairs) == pytest.approx(len(decided) / 2**pairs)


def test_orders_that_chance_would_decide_are_expected_of_all_that_were_tested():
    """Six pairs each: one agrees, one is equal, one has not learned; one of five pairs is not tested."""
    orders = [Order("copy", "rope", s, "x") for s in ("nope", "alibi", "t5", "fire")]
    slow, few = record("t5", 0.3, HALF), record("fire", 0.3, n=5)
    runs = made.results("x", [CONTROL, record("nope", 0.3), record("alibi", 0.9), slow, few])
    tested, decided, expected = orders_by_chance(findings(orders, runs))
    assert (tested, decided, expected) == (3, 1, pytest.approx(3 * 2 / 2**6))


@pytest.mark.parametrize(
    ("gaps", "says"),
    [
        ([0.004, 0.005, 0.02, 0.03, 0.04, 0.05], "the first is ahead in all 6 pairs"),
        ([-0.004, -0.005, -0.02, -0.03, -0.04, -0.05], "the second is ahead in all 6 pairs"),
        ([-0.004, 0.005, 0.02, 0.03, 0.04, 0.05], "begins within the tolerance"),
        ([0.004, -0.005, -0.02, -0.03, -0.04, -0.05], "ends within the tolerance"),
        ([-0.04, 0.005, 0.02, 0.03, 0.04, 0.05], "reaches from one order to the other"),
    ],
)
def test_an_undecided_order_says_where_its_interval_lies(gaps, says):
    """The tolerance is 0.01; both schemes are far above their floors."""
    pairs = {"a": [0.5 + gap for gap in gaps], "b": [0.5] * 6}
    records = [
        made.record(s, s, "copy", [made.trial(s, "copy", n, {16: 1.0, 32: v}, rows=1000) for n, v in enumerate(of)])
        for s, of in pairs.items()
    ]
    (found,) = findings([Order("copy", "a", "b", "x", over=(32,))], made.results("r", records))
    assert found.cause == "undecided" and says in found.reason
    assert ("reaches from one" in found.reason) == (says == "reaches from one order to the other")


@pytest.mark.parametrize(("share", "better"), [(0.999, True), (0.5, False)])
@pytest.mark.parametrize("scale", ["share", "log"])
def test_a_number_that_differs_says_which_way(share, better, scale):
    runs = [made.trial("a", "copy", n, {16: 1.0, 32: share}, rows=1000) for n in range(6)]
    claim = Published("copy", "a", 0.1 if scale == "log" else 0.9, "x", over=(32,), scale=scale)
    (found,) = findings([claim], made.results("r", [made.record("a", "a", "copy", runs)]))
    assert (found.verdict, found.better) == ("differs", better)
    assert claims.row(found)["verdict"] == f"differs: ours {'better' if better else 'worse'}"
