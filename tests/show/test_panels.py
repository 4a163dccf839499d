"""A figure of an experiment's own is told by what is drawn in it: axes, marks, floors, runs, and how trials ended."""

from dataclasses import replace

import numpy as np
import pytest

from posenc.lab.figures import style
from posenc.lab.figures.across import across, by_merit
from posenc.lab.figures.captions import unusual
from posenc.lab.figures.figures import length
from posenc.lab.figures.panels import TRAINED, Panel, doubling, ranged, spaced
from posenc.lab.report import sections
from posenc.lab.results.floors import mean_floors
from posenc.lab.store.schema import TaskRecord
from tests.lab import made

POINTS = {"rope": {1: [1.0, 0.9, 0.8], 2: [0.5, 0.4, 0.6]}, "alibi": {1: [0.9, 0.9, 0.9], 2: [0.3, 0.3, 0.3]}}
KNOWN = {1: made.FLOORS, 2: {**made.FLOORS, "prior": 0.25}}
SHOWN = Panel(POINTS, "places back", "accuracy where trained", "near", "A point is one run.", KNOWN)


def results():
    return made.results("made", (made.rope(), made.rope(label="alibi", family="linear")))


def of(drawing):
    """Line label to the line, of the only panel."""
    (axes,) = drawing.figure.axes
    return {line.get_label(): line for line in axes.get_lines()}


@pytest.mark.parametrize(("run", "trained"), [({"lengths": "example"}, (4, 16)), ({}, (16, 16))])
def test_a_schedule_of_sizes_is_shared_only_where_there_is_one_for_all_seeds(run, trained):
    """Sizes drawn for each example depend on the seed, and a single size has no schedule."""
    one = made.record("rope", "rotary", "copy", [made.trial("rope", "copy", 0, {16: 1.0})], trained=trained, **run)
    said = across(made.results("one", (one,)), SHOWN).caption
    assert "share one test set per size, so spreads leave out its sampling error." in said and "schedule" not in said


def test_what_is_drawn_is_what_the_caption_says():
    drawn = of(across(results(), SHOWN))
    assert {"rope", "alibi", "_uniform", "_prior", "_position", "_run"} == set(drawn)
    np.testing.assert_allclose(drawn["rope"].get_ydata(), [0.9, 0.5])
    np.testing.assert_allclose(drawn["_prior"].get_xydata(), [(1, 0.15), (2, 0.25)])
    log = across(results(), replace(SHOWN, log=True))
    (axes,) = log.figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("places back", "accuracy where trained")
    assert axes.get_xscale() == "log" and "(along, on a log axis)" in log.caption


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


def test_floors_are_means_over_those_sizes_at_which_all_are_known():
    known = {8: {"uniform": 0.1, "prior": 0.3}, 16: {"uniform": 0.2, "prior": 0.5}}
    task = TaskRecord("copy", "token", (4, 7), known)
    assert mean_floors(task, (8, 16)) == pytest.approx({"uniform": 0.15, "prior": 0.4})
    task = replace(task, floors={**known, 16: {"uniform": 0.2, "prior": None}})
    assert mean_floors(task, (8, 16)) == pytest.approx({"uniform": 0.15})
    assert mean_floors(task, (8, 64)) == {} == mean_floors(task, ())
    assert mean_floors(replace(task, metric="error"), (8,)) == pytest.approx({"uniform": 0.9, "prior": 0.7})


def test_sizes_that_double_stand_on_a_log_axis_and_others_do_not():
    assert doubling([8, 16, 20, 32]) and doubling([1, 2, 4])
    assert not doubling([64, 96, 128]) and not doubling([0, 3, 6]) and not doubling([5, 10, 30])
    (axes,) = length(made.results("made", (made.rope(),))).figure.axes
    assert axes.get_xscale() == "log" and [t.get_text() for t in axes.get_xticklabels()] == ["8", "16", "24", "32"]


def test_the_bracket_is_closed_where_training_ended_within_the_axis():
    """Sizes 4 to 16 were trained, of which 8 is the smallest measured; then 8 is also the largest."""
    (axes,) = length(made.results("made", (made.rope(),))).figure.axes
    (bracket,) = (line for line in axes.get_lines() if line.get_label() == TRAINED)
    assert bracket.get_markevery() == [1] and list(bracket.get_xdata()) == [pytest.approx(axes.get_xlim()[0]), 16]
    short = made.record("rope", "rotary", "copy", [made.trial("rope", "copy", 0, {8: 1.0})], sizes=(8,))
    (axes,) = length(made.results("made", (short,))).figure.axes
    (bracket,) = (line for line in axes.get_lines() if line.get_label() == TRAINED)
    assert list(bracket.get_xdata()) == list(axes.get_xlim()) and bracket.get_markevery() == []


def test_lines_that_coincide_are_all_seen():
    """The first is the widest, and is drawn first."""
    points = {name: {1: [1.0], 2: [1.0]} for name in ("rope", "alibi")}
    (axes,) = across(results(), replace(SHOWN, points=points)).figure.axes
    widths = [line.get_linewidth() for line in axes.get_lines() if line.get_label() in points]
    assert len(widths) == 2 and widths[0] > 1.5 * widths[1]


def test_a_run_that_lacks_a_place_is_drawn_at_the_others():
    points = {"rope": {1: [1.0, 0.5], 2: [1.0], 4: [0.9, 0.4]}}
    (axes,) = across(results(), replace(SHOWN, points=points)).figure.axes
    runs = [list(line.get_xdata()) for line in axes.get_lines() if line.get_label() == "_run"]
    assert runs == [[1, 2, 4], [1, 4]]


def test_one_size_is_no_range_and_ticks_do_not_touch():
    assert (ranged(64, 64), ranged(4, 16)) == ("64", "4–16")
    assert spaced([1, 2, 4, 8, 9], 3) == [1, 4, 8]


def test_labels_of_three_digits_are_further_apart_than_those_of_two():
    places = [0.0, 1.0, 2.0, 3.0]
    assert spaced(places, 1.0, ["8", "16", "24", "32"]) == places == spaced(places, 1.0)
    assert spaced(places, 1.0, ["64", "100", "150", "200"]) == [0.0, 2.0], "100 would touch 64, and 200 150"


def test_the_legend_has_the_best_line_first_and_is_read_row_by_row():
    points = {name: {8: [1.0], 16: [1.0], 32: [share]} for name, share in (("alibi", 0.2), ("rope", 0.8))}
    shown = replace(SHOWN, points=points, trained=(4, 16))
    assert by_merit([shown]) == ["rope", "alibi"] and by_merit([replace(shown, falling=True)]) == ["alibi", "rope"]
    assert [t.get_text() for t in across(results(), shown).figure.legends[0].get_texts()] == ["rope", "alibi"]
    assert style.by_columns(7, 3) == [0, 3, 6, 1, 4, 2, 5], "matplotlib fills its columns: 0 1 2, 3 4 5, 6"


def test_an_axis_that_begins_above_0_says_what_lies_below_it():
    drawing = across(results(), replace(SHOWN, ends=(0.8, 1.0), points={"rope": {1: [0.9]}, "alibi": {1: [0.3]}}))
    (axes,) = drawing.figure.axes
    assert axes.get_ylim()[0] > 0.75 and [t.get_text() for t in axes.get_yticklabels()][0] == ".8"
    assert "Below the axis of 'near': alibi (at most 0.30)." in drawing.caption
    assert {"guess .10 ↓", "position .20 ↓"} <= {t.get_text() for t in axes.texts}
    assert all(line.get_clip_on() for line in axes.get_lines() if line.get_label() in ("rope", "alibi"))


def test_runs_that_have_no_middle_are_a_line_each():
    drawing = across(results(), replace(SHOWN, each=True))
    ys = sorted(list(line.get_ydata()) for line in drawing.figure.axes[0].get_lines() if line.get_color() != style.SOFT)
    assert ys == [[0.8, 0.6], [0.9, 0.3], [0.9, 0.3], [0.9, 0.3], [0.9, 0.4], [1.0, 0.5]]
    assert "Lines are single runs;" in drawing.caption and "medians" not in drawing.caption


def test_spreads_of_many_lines_are_bars():
    six = {"rope": {1: [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]}}
    drawing = across(results(), replace(SHOWN, points=six, bars=True))
    (bars,) = drawing.figure.axes[0].collections
    assert [list(map(tuple, path)) for path in bars.get_segments()] == [[(1.0, 0.5), (1.0, 1.0)]]
    assert "bars the exact 95% interval" in drawing.caption


def test_captions_name_every_setting_that_is_not_the_default_and_the_rate():
    """Of those that differ among lines, the labels say it."""
    run = {"model": "decoder", "depth": 2, "heads": 4, "stem": "conv(k=2)", "batch": 32, "hidden": 256, "longest": 64}
    trials = made.rope()["trials"]
    records = [made.record("rope", "rotary", "copy", trials, **run, norm=norm) for norm in ("pre", "post")]
    for n, record in enumerate(records):
        more = [{"id": made.trial_id(n, t["id"]), "knobs": {**t["knobs"], "clip": 0.5}} for t in trials]
        record["trials"] = [{**t, **own, "steps": 2000} for t, own in zip(trials, more, strict=True)]
    found = made.results("made", records)
    said = "Settings other than the default: batch=32, stem=conv(k=2), clip=0.5."
    assert unusual(found) == [said]
    caption = across(found, SHOWN).caption
    assert "Learning rate: 0.001." in caption and len(caption.splitlines()) <= 5
    assert said in across(found, SHOWN).caption and said in str(sections.question(found, None).body)
