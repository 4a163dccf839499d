"""A figure of an experiment's own is told by what is drawn in it: axes, marks, floors, runs, and how trials ended."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

from posenc.lab.figures import panel_captions
from posenc.lab.figures.across import across, panels
from posenc.lab.figures.figures import length_curve
from posenc.lab.figures.panels import Panel, ranged, spaced
from posenc.lab.results.results import mean_floors
from posenc.lab.store.schema import TaskRecord
from tests.lab import made

POINTS = {"rope": {1: [1.0, 0.9, 0.8], 2: [0.5, 0.4, 0.6]}, "alibi": {1: [0.9, 0.9, 0.9], 2: [0.3, 0.3, 0.3]}}
KNOWN = {1: made.FLOORS, 2: {**made.FLOORS, "prior": 0.25}}
MIDDLE, HIGH = ({n: share for n in made.SIZES} for share in (0.5, 0.9))
SHOWN = Panel(POINTS, "places back", "accuracy where trained", "near", "A point is one run.", KNOWN)


def results():
    return made.results("made", (made.rope(), made.rope(label="alibi", family="linear")))


def of(drawing):
    """Line label to the line, of the only panel."""
    (axes,) = drawing.figure.axes
    return {line.get_label(): line for line in axes.get_lines()}


def test_a_caption_says_all_that_is_drawn():
    first, marks, *rest = across(results(), SHOWN).caption.splitlines()
    assert first == (
        "near: accuracy where trained (up) against places back (along), n = 3 runs. A point is one run. "
        "Medians at 1: 0.90 alibi and rope. Medians at 2: 0.50 rope; 0.30 alibi. "
        "Floors: 0.10 by a uniform guess, 0.15 to 0.25 by the best constant, 0.20 by position alone."
    )
    assert marks == (
        "Points are single runs, lines their medians, bands the range over runs (fewer than 6, so no interval); "
        "dotted lines are the floors."
    )
    assert rest == [
        "Tasks: copy, trained on sizes 4 to 16.",
        "All runs of a task share one test set per size, so spreads leave out its sampling error.",
        "Token accuracy is teacher-forced: each token is predicted from the true tokens before it.",
        "Trials: 6 done, 0 diverged, 0 failed.",
    ]


def test_what_is_drawn_is_what_the_caption_says():
    drawn = of(across(results(), SHOWN))
    assert {"rope", "alibi", "_uniform", "_prior", "_position"} == set(drawn)
    np.testing.assert_allclose(drawn["rope"].get_ydata(), [0.9, 0.5])
    np.testing.assert_allclose(drawn["_prior"].get_xydata(), [(1, 0.15), (2, 0.25)])
    (axes,) = across(results(), SHOWN, log=True).figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("places back", "accuracy where trained")
    assert axes.get_xscale() == "log" and "(along, on a log axis)" in across(results(), SHOWN, log=True).caption


def test_what_is_no_accuracy_has_no_floors_and_says_so():
    other = dataclasses.replace(SHOWN, up="change", floors=None)
    drawing = across(results(), other)
    assert set(of(drawing)) == {"rope", "alibi"}
    assert "Not an accuracy, so without floors." in drawing.caption and "dotted" not in drawing.caption
    unknown = across(results(), dataclasses.replace(SHOWN, floors={})).caption
    assert "Floors: unknown." in unknown


def test_every_panel_has_a_sentence_of_its_own():
    drawing = panels(results(), [SHOWN, Panel(POINTS, "size", "change", "far")])
    first, second = drawing.caption.splitlines()[:2]
    assert first.startswith("near: accuracy where trained (up)") and second.startswith("far: change (up) against size")


def test_the_interval_is_named_from_six_runs_on():
    six = {"rope": {1: [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]}}
    said = across(results(), dataclasses.replace(SHOWN, points=six)).caption
    assert "n = 6 runs" in said and "bands the exact 95% interval of the median;" in said
    both = across(results(), dataclasses.replace(SHOWN, points=POINTS | six)).caption
    assert "n = 3 to 6 runs" in both and "the range over runs where n < 6" in both


def rates():
    """One scheme at two learning rates, a trial of which diverged and one of which failed."""
    whole = made.rope()
    low = [made.trial("rope", "copy", s, {8: 0.5, 16: 0.5, 24: 0.5, 32: 0.5}, lr=1e-4) for s in (0, 1, 2)]
    low[0] |= {"outcome": "diverged", "evaluations": {}}
    lost = [{**line, "outcome": "failed"} for line in made.plan(made.rope((8,)), "g")]
    return made.results("made", ({**whole, "trials": [*whole["trials"], *low]},), tuple(lost))


def test_a_figure_of_every_rate_does_not_say_that_one_was_chosen():
    every, chosen = (across(rates(), SHOWN, every_rate=flag).caption for flag in (True, False))
    assert "Every learning rate tried is drawn; none was chosen." in every and "chosen on" not in every
    assert "Of the learning rates 0.0001, 0.001, each scheme's was, per task, chosen on validation" in chosen
    for said in (every, chosen):
        assert "5 done, 1 diverged (each counted as a uniform guess), 1 failed (left out)." in said


def test_a_figure_that_anyone_drew_is_told_by_its_axes():
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    axes.set(xlabel="depth", ylabel="loss", title="deeper")
    said = panel_captions.foreign(figure, results()).splitlines()
    assert said[:2] == ["deeper: loss (up) against depth (along).", "n = 3 runs of each scheme."]
    assert said[-1] == "Trials: 6 done, 0 diverged, 0 failed." and not any("Points are" in line for line in said)


def test_floors_are_means_over_those_sizes_at_which_all_are_known():
    known = {8: {"uniform": 0.1, "prior": 0.3}, 16: {"uniform": 0.2, "prior": 0.5}}
    task = TaskRecord("copy", "token", (4, 7), known)
    assert mean_floors(task, (8, 16)) == pytest.approx({"uniform": 0.15, "prior": 0.4})
    task = replace(task, floors={**known, 16: {"uniform": 0.2, "prior": None}})
    assert mean_floors(task, (8, 16)) == pytest.approx({"uniform": 0.15})
    assert mean_floors(task, (8, 64)) == {} == mean_floors(task, ())
    assert mean_floors(replace(task, metric="error"), (8,)) == pytest.approx({"uniform": 0.9, "prior": 0.7})


def test_the_name_of_a_floor_goes_below_where_a_line_would_cross_it():
    low = {"rope": {1: [0.5], 2: [0.5], 3: [0.5]}}
    at = {x: {"uniform": 0.4} for x in (1, 2, 3)}
    for height, side in ((0.9, "bottom"), (0.43, "top")):
        points = {"rope": {x: [height] for x in low["rope"]}}
        (axes,) = across(results(), Panel(points, "x", "accuracy", floors=at)).figure.axes
        (text,) = (t for t in axes.texts if t.get_text() == "guess")
        assert text.get_va() == side, height


def test_the_sizes_trained_on_are_named_beside_a_line_and_within_the_panel():
    records = [made.record("rope", "rotary", "copy", [made.trial("rope", "copy", 0, c)]) for c in (MIDDLE, HIGH)]
    heights = []
    for rec in records:
        (axes,) = length_curve(made.results("made", (rec,))).axes
        (text,) = (t for t in axes.texts if t.get_text() == "trained on 4–16")
        heights.append(text.get_position()[1])
    assert heights == [0.35, 0.5]
    short = made.record("rope", "rotary", "copy", [made.trial("rope", "copy", 0, {8: 1.0})], sizes=(8,))
    (axes,) = length_curve(made.results("made", (short,))).axes
    (text,) = (t for t in axes.texts if t.get_text() == "trained on 4–16")
    assert axes.get_xlim()[0] < text.get_position()[0] < axes.get_xlim()[1]


def test_one_size_is_no_range_and_ticks_do_not_touch():
    assert (ranged(64, 64), ranged(4, 16)) == ("64", "4–16")
    assert spaced([1, 2, 4, 8, 9], 3) == [1, 4, 8]
