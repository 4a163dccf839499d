"""Figures of rows: each row has its name, its runs and its median; steps, seeds, curves and places are those stored."""

import math

import numpy as np
import pytest

from posenc.lab.figures.curves import curves, place_curve, steps
from posenc.lab.figures.rows import Dots, Grid, rows, solved_seeds
from tests.lab import made

RUNS = {"rope": [0.9, 1.0, 0.8], "alibi": [0.2, 0.3, 0.1]}


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def test_dots_are_runs_and_bars_their_medians_in_the_row_of_their_name():
    figure = rows(["rope", "nope", "alibi"], [Dots("Copy", "accuracy", RUNS, {"uniform": 0.1, "prior": 0.12})])
    (axes,) = figure.axes
    assert [t.get_text() for t in axes.get_yticklabels()] == ["rope", "nope", "alibi"]
    found = [line for line in axes.get_lines() if line.get_label() == "_run"]
    assert [(list(dots.get_xdata()), set(dots.get_ydata())) for dots in found] == [
        *(([0.9, 1.0, 0.8], {0}), ([0.2, 0.3, 0.1], {2})),
    ]
    drawn = lines(axes)
    assert list(drawn["rope"].get_xdata()) == [0.9, 0.9] and list(drawn["alibi"].get_xdata()) == [0.2, 0.2]
    assert list(drawn["_uniform"].get_xdata()) == [0.1, 0.1]
    assert [t.get_text() for t in axes.texts] == ["guess, constant"], "close floors share a text"


def test_from_six_runs_on_the_interval_of_the_median_is_drawn():
    six = {"rope": [0.4, 0.5, 0.6, 0.7, 0.8, 0.9]}
    (axes,) = rows(["rope"], [Dots("Copy", "accuracy", six)]).axes
    assert [0.4, 0.9] in [[*map(float, line.get_xdata())] for line in axes.get_lines()]
    (axes,) = rows(["rope"], [Dots("Copy", "accuracy", RUNS)]).axes
    assert [0.8, 1.0] not in [[*map(float, line.get_xdata())] for line in axes.get_lines()]


def test_cells_hold_their_shares_and_texts_and_what_is_missing_is_empty():
    grid = Grid("Copy", "tokens", {"rope": {8: 1.0, 16: 0.5}, "alibi": {8: 0.0}}, {"rope": {8: "3/3"}}, (4, 8))
    (axes,) = rows(["rope", "alibi"], [grid]).axes
    np.testing.assert_allclose(axes.images[0].get_array().filled(-1), [[1.0, 0.5], [0.0, -1]])
    assert [t.get_text() for t in axes.texts] == ["3/3", "trained on 4–8"]


def results():
    records = [made.rope(), made.rope(label="alibi", family="linear", drop=0.3), made.rope(task="sort")]
    records[0]["trials"][0]["curve"] = {"step": [5, 10], "loss": [1.0, 0.1]}
    records[0]["trials"][1]["curve"] = {"step": [5, 10], "loss": [0.2, 0.1]}
    records[0]["trials"][2]["curve"] = {"step": [5, 10], "loss": [1.0, 0.5]}
    return made.results("made", tuple(records))


def test_seeds_that_solve_a_size_are_counted():
    drawing = solved_seeds(results())
    copy = next(axes for axes in drawing.figure.axes if axes.get_title("left") == "copy")
    row = [t.get_text() for t in copy.get_yticklabels()].index("rope")
    said = {(round(t.get_position()[1]), t.get_position()[0]): t.get_text() for t in copy.texts if "/" in t.get_text()}
    assert [said[row, k] for k in range(4)] == ["3/3", "3/3", "0/3", "0/3"]
    assert "at least 0.95 is right, k of n" in drawing.caption and "Trials: 9 done" in drawing.caption


def test_curves_are_the_losses_that_were_recorded():
    drawing = curves(results())
    copy = next(axes for axes in drawing.figure.axes if axes.get_title("left") == "copy")
    assert list(lines(copy)["rope"].get_ydata()) == [1.0, 0.1] and copy.get_yscale() == "log"
    assert "and no accuracy along training" in drawing.caption


def test_steps_are_counted_until_the_loss_is_small_or_never():
    """A guess has 0.1 here, so a loss below log(10) / 10 = 0.23 is small."""
    drawing = steps(results())
    copy = next(axes for axes in drawing.figure.axes if axes.get_title("left") == "copy")
    row = [t.get_text() for t in copy.get_yticklabels()].index("rope")
    (dots,) = (d for d in copy.get_lines() if d.get_label() == "_run" and set(d.get_ydata()) == {row})
    end = copy.get_xticks()[-1]
    assert list(dots.get_xdata()) == [10, 5, end] and end > 10
    assert [t.get_text() for t in copy.get_xticklabels()] == ["0", "10", "never"]
    assert (
        -0.1 * math.log(0.1) == pytest.approx(0.23, abs=0.001) and "at most 0.1 of that of a guess" in drawing.caption
    )


def test_what_was_not_recorded_is_refused_in_a_sentence():
    bare = made.rope()
    bare["trials"] = [{k: v for k, v in trial.items() if k != "curve"} for trial in bare["trials"]]
    for draw in (curves, steps):
        with pytest.raises(ValueError, match="hold no loss along training; train again under a new --name"):
            draw(made.results("old", (bare,)))
    with pytest.raises(ValueError, match="'old' hold no hits by position: older versions did not count them"):
        place_curve(made.results("old", (bare,)))
    exact = {**made.rope(), "task": {**made.rope()["task"], "metric": "exact"}}
    with pytest.raises(ValueError, match="hold no guess at one token, so no loss is known to be small"):
        steps(made.results("old", (exact,)))
