"""By how much a loss fell over the last half of training, by hand, and the schemes whose training stopped too early."""

import math

import numpy as np
import pytest

from posenc.lab.figures import captions
from posenc.lab.figures.tables import table
from posenc.lab.results import losses
from posenc.lab.results.results import load
from posenc.lab.results.statistics import cells
from posenc.lab.results.table import table as table_of
from posenc.lab.store.schema import TrialRecord, read
from tests.lab import made
from tests.test_experiments import FOLDER

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
def test_the_fall_is_from_the_tenth_before_the_middle_to_the_last_tenth(every):
    """A decay by e^-3 over training: by 1 - e^-1.5 over its half."""
    found = curve(lambda part: math.exp(-3 * part), every)
    step, loss = np.array(found["step"]), np.array(found["loss"])
    ours = end(losses=found)
    assert ours.loss == pytest.approx(loss[step > 0.9 * STEPS].mean())
    assert ours.fall == pytest.approx(1 - math.exp(-1.5))


@pytest.mark.parametrize(
    ("points", "middle", "last"),
    [(2, [1], [2]), (3, [2], [3]), (5, [3], [5]), (6, [3], [6]), (7, [3], [7]), (12, [5, 6], [11, 12])],
)
def test_of_few_points_the_middle_is_that_in_which_the_first_half_ends(points, middle, last):
    """Points are counted from 1; none of 3 or 5 ends in the tenth before the middle."""
    heights = np.random.default_rng(points).uniform(1, 2, points)
    steps = [round(STEPS * (n + 1) / points) for n in range(points)]
    ours = end(losses={"step": steps, "loss": [*map(float, heights)]})
    first, final = (np.log([heights[n - 1] for n in numbers]).mean() for numbers in (middle, last))
    assert 1 - ours.fall == pytest.approx(math.exp(final - first))


def test_a_loss_that_fell_by_a_known_share_is_said_to_fall_by_it():
    decay = end(losses=curve(lambda part: math.exp(-part)))
    assert decay.fall == pytest.approx(1 - math.exp(-0.5)) and decay.falling
    assert not end(losses=curve(lambda part: math.exp(-0.2 * part))).falling, "by 9.5 %, as it does with the rate"
    assert end(losses=curve(lambda part: math.exp(-0.22 * part))).falling, "by 10.4 %"
    assert not end(losses=curve(lambda part: 2.0)).falling
    assert not end(losses=curve(lambda part: 1.0 + part)).falling, "one that rises does not fall"
    assert not end(losses=curve(lambda part: 0.01 * math.exp(-part))).falling, "nothing is left to fall"


def of_cosine(part):
    """The share of its learning rate that a schedule has spent: by cosine to a tenth, without a warm-up."""
    return (0.55 * part + 0.45 * math.sin(math.pi * part) / math.pi) / 0.55


def test_a_loss_that_is_flat_only_because_the_rate_is_small_was_still_falling():
    """A loss that falls by half of itself with each tenth of the whole learning rate: over the last tenth of the steps,
    in which a fiftieth of it is spent, it falls by a few percent, and over the last half by most of itself."""
    found = curve(lambda part: 20 * 0.5 ** (10 * of_cosine(part)), 20)
    late = [loss for step, loss in zip(found["step"], found["loss"], strict=True) if step > 0.9 * STEPS]
    assert 1 - late[-1] / late[0] < 0.12 and 1 - of_cosine(0.9) < 0.02
    assert end(losses=found).fall > 0.75 and end(losses=found).falling


def test_what_a_loss_falls_by_because_the_rate_does_is_below_what_is_asked_for():
    """An average of all tokens looks nothing up, however long it is trained; the module quotes by how much it fell."""
    results = load(FOLDER / "records" / "averaging.json")
    ends, rates, falls = losses.endings(results), {(c.task, c.scheme): c.rate for c in cells(results)}, {}
    for record in results.records:
        for trial in record.trials:
            task, scheme = record.task.label, results.label(record, trial)
            if "average" in scheme and task != "count_symbol" and trial.knobs.lr == rates[task, scheme]:
                falls.setdefault(task, []).append(ends[trial.id].fall)
    medians = sorted(float(np.median(of)) for of in falls.values())
    assert [f"{100 * fall:.0f}" for fall in medians] == ["7", "8"] and "by 7 and 8 %" in losses.__doc__
    assert max(medians) < losses.FALLING


@pytest.mark.parametrize(("step", "loss"), [([], []), ([5], [1.0]), ([5, 10], [None, 1.0])])
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


@pytest.mark.ci
@pytest.mark.parametrize("points", [3, 4, 6, 10, 24])
@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_a_flat_curve_with_noise_is_rarely_said_to_fall(points, noise):
    """In 5 % of draws at most, of one run and of medians of more, where 1,000 draws are right within 1.5 %; without the
    scatter it is about a half."""
    rng = np.random.default_rng(points)
    for runs in (1, 3, 6, 10):
        assert called(rng, lambda part: 1.0, points, noise, runs) < 0.065, runs


@pytest.mark.parametrize("rate", [1, 3, 6])
@pytest.mark.parametrize("points", [4, 6, 15, 60])
def test_a_steady_decay_is_said_to_fall_though_it_is_noisy(rate, points):
    """By 39, 78 and 95 % over the last half, with noise of 1 %, in most single runs."""
    rng = np.random.default_rng(rate)
    assert called(rng, lambda part: 20 * math.exp(-rate * part), points, 0.01, 1, 100) > 0.9


def test_two_points_show_no_scatter_and_so_no_fall():
    two = end(losses={"step": [STEPS // 2, STEPS], "loss": [2.0, 1.0]})
    assert two.error == math.inf and two.fall == pytest.approx(0.5) and not two.falling


def switched(before, after, share=0.95, every=20):
    """The record of a run whose second scheme takes over at a share of the steps, with the end of its only trial."""
    loss = lambda part: before(part) if part <= share + 1e-9 else after(part)  # noqa: E731
    record = made.record("rope, then pi", "rotary", "copy", [trial(losses=curve(loss, every))])
    record["run"]["then"] = f"{share} pi"
    return made.results("a", [record])


def test_of_a_run_that_goes_on_only_what_came_after_the_switch_counts():
    """At the switch the loss jumps to three times as much. Before it all was flat, and after it all falls, by half of
    itself from the first half of what came after it to the second; or the reverse."""
    falls = switched(lambda part: 1.0, lambda part: 3 * 0.5 ** (40 * (part - 0.95)), every=5)
    assert losses.falling(falls) == {("copy", "rope, then pi"): pytest.approx(0.5)}
    (found,) = losses.endings(falls).values()
    assert found.fall > 0 and found.loss < 1
    still = switched(lambda part: 9 * math.exp(-9 * part), lambda part: 3.0, every=5)
    assert losses.falling(still) == {} and [e.fall for e in losses.endings(still).values()] == [pytest.approx(0)]


@pytest.mark.parametrize(("share", "points"), [(0.96, 2), (0.97, 1), (0.98, 1), (0.999, 0)])
def test_too_few_points_after_the_switch_are_held_against_the_scatter_before_it(share, points):
    """Points are 40 steps of 2,000 apart. One whose segment began before the switch holds both schemes; a single one
    shows no fall, and of two the second is lower by 11 %: more than nothing, and less than a scatter of 20 %."""
    found = losses.endings(switched(lambda part: 1.0, lambda part: 3 * math.exp(-6 * (part - 0.95)), share, every=40))
    assert len(found) == (points >= 2) and all(one.falling for one in found.values())
    noise = np.random.default_rng(0).normal(size=STEPS + 1)
    rough = lambda part: math.exp(0.2 * noise[round(part * STEPS)])  # noqa: E731
    found = losses.endings(switched(rough, lambda part: 3 * math.exp(-6 * (part - 0.95)), share, every=40))
    assert len(found) == (points >= 2) and not any(one.falling for one in found.values())


def test_a_switch_that_this_version_cannot_read_says_nothing():
    found = switched(lambda part: 2 - part, lambda part: 2 - part)
    record = made.written(found.records[0])
    record["run"]["then"] = "later than 0.9"
    assert losses.endings(made.results("a", [record])) == {}


def results():
    fast = [trial(s, "rope", losses=curve(lambda part: math.exp(-part))) for s in range(3)]
    once = [trial(s, "alibi", losses=curve(lambda part, s=s: math.exp(-part * (s == 0)))) for s in range(3)]
    return made.results(
        "a", [made.record("rope", "rotary", "copy", fast), made.record("alibi", "linear", "copy", once)]
    )


def test_a_scheme_is_still_falling_by_the_median_of_its_runs():
    assert losses.falling(results()) == {("copy", "rope"): pytest.approx(1 - math.exp(-0.5))}


def test_tables_and_files_show_it():
    how = "the loss fell by more than 10% over the last half of the steps, and by more than it scatters"
    said = f"Still falling when training ended ({how}): rope 39%."
    assert said in table(results())
    lines = table_of(results())
    (row,) = {*lines[lines.scheme == "rope"][["final_loss", "final_fall"]].itertuples(index=False, name=None)}
    assert row == (pytest.approx((math.exp(-0.95) + math.exp(-1)) / 2), pytest.approx(1 - math.exp(-0.5)))
    none = made.results("a", [made.record("rope", "rotary", "copy", [trial(losses=curve(lambda part: 1.0))])])
    assert captions.still_falling(none, cells(none)) == []


def test_runs_at_other_rates_than_the_chosen_one_say_nothing():
    good = [trial(s, losses=curve(lambda part: 1.0), lr=1e-2) for s in range(3)]
    bad = [trial(s, losses=curve(lambda part: math.exp(-part)), lr=1e-4, validation={16: 0.1}) for s in range(3)]
    assert losses.falling(made.results("a", [made.record("rope", "rotary", "copy", good + bad)])) == {}
