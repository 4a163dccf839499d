"""A figure in the size of a paper can be read: nothing is cut off, no label touches another, none lies on data."""

import pytest

from posenc.lab.figures import figures, venues
from posenc.lab.figures.panels import TRAINED
from posenc.lab.figures.rows import Dots, rows
from tests.lab import made

SIZES = ("neurips", "icml")


def drawn(venue):
    records = [
        made.rope(range(6), task=task, label=label, family=label, drop=drop)
        for task in ("copy", "sort", "turn")
        for label, drop in (("rope", 0.1), ("alibi", 0.3), ("sinusoidal @ random_sorted(limit=128)", 0.5))
    ]
    with venues.drawn_for(venue, "column"):
        figure = figures.length(made.results("made", tuple(records))).figure
    venues.check_room(figure, "column")
    return figure


@pytest.mark.parametrize("venue", SIZES)
def test_a_figure_is_as_wide_as_its_column_and_its_legend_fits(venue):
    figure = drawn(venue)
    assert figure.get_figwidth() == pytest.approx(venues.page(venue, "column").width)
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= -1 and legend.x1 <= figure.bbox.width + 1


@pytest.mark.parametrize("venue", SIZES)
def test_labels_do_not_touch_and_lie_beside_the_data(venue):
    for axes in drawn(venue).axes:
        ticks = [label.get_window_extent() for label in axes.get_xticklabels()]
        floors = [t.get_window_extent() for t in axes.texts if t.get_label() != TRAINED]
        for boxes in (ticks, floors):
            assert boxes and not any(a.padded(-1).overlaps(b) for k, a in enumerate(boxes) for b in boxes[k + 1 :])
        assert all(box.x0 >= axes.bbox.x1 for box in floors) and axes.bbox.height > 0.7 * axes.figure.dpi


def test_panels_that_move_below_one_another_keep_the_name_of_their_axis():
    assert [axes.get_ylabel() for axes in drawn("icml").axes] == ["accuracy (tokens)"] * 3


def test_rows_keep_their_height():
    with venues.drawn_for("neurips", "column"):
        figure = rows([f"s{k}" for k in range(9)], [Dots("Copy", "accuracy", {"s0": [0.5]})])
    figure.draw_without_rendering()
    names = [label.get_window_extent() for label in figure.axes[0].get_yticklabels()]
    assert not any(a.padded(-1).overlaps(b) for k, a in enumerate(names) for b in names[k + 1 :])


def test_names_that_leave_rows_no_room_are_refused():
    with venues.drawn_for("icml", "column"):
        figure = rows(["a scheme with a long name" * 3], [Dots("0", "accuracy", {"s0": [0.5]})])
    with pytest.raises(ValueError, match=r"3\.2 inches"):
        venues.check_room(figure, "column")
