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
from tests.planting import Fault
from tests.planting import plant as plant

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


def drawn(rng, loss, points, noise):
    """A curve with noise in proportion to the loss, of each point its own."""
    every = STEPS // points
    found = curve(loss, every, every * points)
    return found | {
        "loss": [
            max(float(x * (1 + noise * z)), 1e-3) for x, z in zip(found["loss"], rng.normal(size=points), strict=True)
        ]
    }


def called(rng, loss, points, noise, runs, draws=1000):
    """How often the loss of a scheme of so many runs is said to be still falling; its runs are some of those drawn."""
    every = [end(losses=drawn(rng, loss, points, noise)) for _ in range(draws)]
    chosen = rng.permuted(np.tile(np.arange(draws), (draws, 1)), axis=1)[:, :runs]
    return sum(losses._middle([every[n] for n in row]).falling for row in chosen) / draws


@pytest.mark.parametrize("points", [3, 4, 10, 24])
@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_a_flat_curve_with_noise_is_rarely_said_to_fall(points, noise):
    """In 5 % of draws at most, of one run and of medians of more, where 1,000 draws are right within 1.5 %; without the
    scatter it is about a half."""
    rng = np.random.default_rng(points)
    for runs in (1, 3, 6, 10):
        assert called(rng, lambda part: 1.0, points, noise, runs) < 0.065, runs


def test_noise_that_is_not_held_against_the_fall_is_noticed(plant):
    plant(Fault("posenc.lab.results.losses:_scatter", "float(np.sqrt((bends**2).mean() / 6))", "0.0", "rope", "too"))
    with pytest.raises(AssertionError):
        test_a_flat_curve_with_noise_is_rarely_said_to_fall(10, 0.2)


@pytest.mark.parametrize("rate", [1, 3, 6])
@pytest.mark.parametrize("points", [4, 6, 15, 60])
def test_a_steady_decay_is_said_to_fall_though_it_is_noisy(rate, points):
    """By 10, 26 and 45 % over the last tenth, with noise of 1 %, in most single runs."""
    rng = np.random.default_rng(rate)
    assert called(rng, lambda part: 20 * math.exp(-rate * part), points, 0.01, 1, 100) > 0.9


def test_two_points_show_no_scatter_and_so_no_fall():
    two = end(losses={"step": [STEPS // 2, STEPS], "loss": [2.0, 1.0]})
    assert two.error == math.inf and two.fall > losses.FALLING and not two.falling


def switched(before, after, share=0.95, every=20):
    """The record of a run whose second scheme takes over at a share of the steps, with the end of its only trial."""
    loss = lambda part: before(part) if part <= share + 1e-9 else after(part)  # noqa: E731
    record = made.record("rope, then pi", "rotary", "copy", [trial(losses=curve(loss, every))])
    record["run"]["then"] = f"{share} pi"
    return made.results("a", [record])


def test_of_a_run_that_goes_on_only_what_came_after_the_switch_counts():
    """At the switch the loss jumps to three times as much. Before it all was flat, and after it all falls; or the
    reverse; the line through both would say the opposite."""
    falls = switched(lambda part: 1.0, lambda part: 3 * math.exp(-3 * (part - 0.95)))
    assert losses.falling(falls) == {("copy", "rope, then pi"): pytest.approx(1 - math.exp(-0.3), rel=0.1)}
    (found,) = losses.endings(falls).values()
    assert found.slope < 0 and found.loss > 2
    still = switched(lambda part: 9 * math.exp(-9 * part), lambda part: 3.0)
    assert losses.falling(still) == {} and [e.slope for e in losses.endings(still).values()] == [pytest.approx(0)]


@pytest.mark.parametrize(("share", "points"), [(0.96, 2), (0.97, 1), (0.98, 1), (0.999, 0)])
def test_too_few_points_after_the_switch_say_nothing(share, points):
    """Points are 40 steps of 2,000 apart. One whose segment began before the switch holds both schemes."""
    found = losses.endings(switched(lambda part: 1.0, lambda part: 3 * math.exp(-3 * part), share, every=40))
    assert len(found) == (points >= 2) and all(one.error == math.inf for one in found.values())


def test_a_switch_that_this_version_cannot_read_says_nothing():
    found = switched(lambda part: 2 - part, lambda part: 2 - part)
    record = made.written(found.records[0])
    record["run"]["then"] = "later than 0.9"
    assert losses.endings(made.results("a", [record])) == {}


def test_a_switch_that_is_not_looked_at_is_noticed(plant):
    plant(Fault("posenc.lab.results.losses:_switch", 'record.run.get("then")', "None", "rope", "after the switch"))
    with pytest.raises(AssertionError):
        test_of_a_run_that_goes_on_only_what_came_after_the_switch_counts()


def results():
    fast = [trial(s, "rope", losses=curve(lambda part: 1.5 - part)) for s in range(3)]
    once = [trial(s, "alibi", losses=curve(lambda part, s=s: 1.5 - part * (s == 0))) for s in range(3)]
    return made.results(
        "a", [made.record("rope", "rotary", "copy", fast), made.record("alibi", "linear", "copy", once)]
    )


def test_a_scheme_is_still_falling_by_the_median_of_its_runs():
    assert losses.falling(results()) == {("copy", "rope"): pytest.approx(1 / 6)}


def test_tables_and_files_show_it():
    how = "the loss fell by more than 5% over the last tenth of the steps, and by more than it scatters"
    said = f"Still falling when training ended ({how}): rope 17%."
    assert said in table(results())
    (row,) = {(row["final_loss"], row["final_slope"]) for row in files.listed(results()) if row["scheme"] == "rope"}
    assert row == (pytest.approx(0.55), pytest.approx(-0.1))
    none = made.results("a", [made.record("rope", "rotary", "copy", [trial(losses=curve(lambda part: 1.0))])])
    assert captions.still_falling(none) == []


def test_runs_at_other_rates_than_the_chosen_one_say_nothing():
    good = [trial(s, losses=curve(lambda part: 1.0), lr=1e-2) for s in range(3)]
    bad = [trial(s, losses=curve(lambda part: 1.5 - part), lr=1e-4, validation={16: 0.1}) for s in range(3)]
    assert losses.falling(made.results("a", [made.record("rope", "rotary", "copy", good + bad)])) == {}
