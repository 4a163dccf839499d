"""The end of a loss curve beside a line fitted otherwise, and the schemes whose training stopped too early."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from posenc.lab.figures import captions, files
from posenc.lab.figures.tables import table
from posenc.lab.results import losses
from posenc.lab.store.schema import TrialRecord, read
from tests.lab import made

STEPS = 2000


def curve(loss, every=100, steps=STEPS):
    """The curve of a loss that is a function of the share of training done."""
    at = list(range(every, steps + 1, every))
    return {"step": at, "loss": [loss(step / steps) for step in at]}


def trial(seed=0, label="rope", losses=None, **more):
    found = made.trial(label, "copy", seed, {8: 1.0, 16: 1.0, 24: 0.5, 32: 0.5}, **{"steps": STEPS, **more})
    return found | {"curve": losses}


def end(**more):
    return losses.ending(read(TrialRecord, trial(**more)))


@pytest.mark.parametrize("every", [1, 10, 40, 100, 200])
def test_the_slope_is_that_of_a_line_through_the_last_tenth(every):
    rng = np.random.default_rng(every)
    noise = {round(n / STEPS, 9): rng.normal(0, 0.01) for n in range(0, STEPS + 1)}
    found = curve(lambda part: math.exp(-3 * part) + noise[round(part, 9)], every)
    step, loss = np.array(found["step"]), np.array(found["loss"])
    last = step >= 0.9 * STEPS
    if last.sum() < 2:
        last[-2:] = True
    line = scipy_stats.linregress(step[last], loss[last])
    ours = end(losses=found)
    assert ours.slope == pytest.approx(line.slope * 0.1 * STEPS)
    assert ours.loss == pytest.approx(loss[last].mean())
    assert ours.fall == pytest.approx(-ours.slope / (line.intercept + line.slope * 0.9 * STEPS))


def test_a_loss_that_fell_by_a_known_share_is_said_to_fall_by_it():
    straight = end(losses=curve(lambda part: 2.0 - part))
    assert (straight.slope, straight.fall) == (pytest.approx(-0.1), pytest.approx(0.1 / 1.1)) and straight.falling
    assert not end(losses=curve(lambda part: 2.0)).falling
    assert not end(losses=curve(lambda part: 1.0 + part)).falling, "one that rises does not fall"
    assert not end(losses=curve(lambda part: 0.01 * (1.5 - part))).falling, "nothing is left to fall"


@pytest.mark.parametrize(("step", "loss"), [([], []), ([5], [1.0]), ([5, 10], None), ([5, 10], [None, 1.0]), (5, 1.0)])
def test_what_has_no_end_has_none(step, loss):
    assert end(losses={"step": step, "loss": loss}) is None
    assert end(losses=curve(lambda part: 1.0), outcome="diverged") is None


def results():
    fast = [trial(s, "rope", losses=curve(lambda part: 1.5 - part)) for s in range(3)]
    once = [trial(s, "alibi", losses=curve(lambda part, s=s: 1.5 - part * (s == 0))) for s in range(3)]
    return made.results(
        "a", [made.record("rope", "rotary", "copy", fast), made.record("alibi", "linear", "copy", once)]
    )


def test_a_scheme_is_still_falling_by_the_median_of_its_runs():
    assert losses.falling(results()) == {("copy", "rope"): pytest.approx(1 / 6)}


def test_tables_and_files_show_it():
    said = (
        "Still falling when training ended (the loss fell by more than 5% over the last tenth of the steps): rope 17%."
    )
    assert said in table(results())
    (row,) = {(row["final_loss"], row["final_slope"]) for row in files.listed(results()) if row["scheme"] == "rope"}
    assert row == (pytest.approx(0.55), pytest.approx(-0.1))
    none = made.results("a", [made.record("rope", "rotary", "copy", [trial(losses=curve(lambda part: 1.0))])])
    assert captions.still_falling(none) == []


def test_runs_at_other_rates_than_the_chosen_one_say_nothing():
    good = [trial(s, losses=curve(lambda part: 1.0), lr=1e-2) for s in range(3)]
    bad = [trial(s, losses=curve(lambda part: 1.5 - part), lr=1e-4, validation={16: 0.1}) for s in range(3)]
    assert losses.falling(made.results("a", [made.record("rope", "rotary", "copy", good + bad)])) == {}
