"""Groups of examples as text, table and figure: medians over runs, their number, and every trial in the table."""

import csv
import io

import numpy as np
import pandas
import pytest

from posenc.lab.figures import grouped
from posenc.lab.figures.exports import csv_of
from posenc.lab.results.table import frame_of

PAIRS = {(1, 1): (1.0, 0.8, 0.9), (1, 2): (0.5, 0.5, 0.2), (2, 1): (0.0, 0.25, 0.125)}


def row(scheme, seed, value, **group):
    counts = {"correct": round(200 * value), "scored": 200, "exact": round(100 * value), "last": 0, "rows": 100}
    head = {"task": "addition", "scheme": scheme, "trial": f"{scheme}{seed}", "family": scheme, "metric": "exact"}
    return head | {"seed": seed, "lr": 0.01} | group | counts | {"value": value}


def pairs(scheme="rope"):
    return frame_of(
        [
            row(scheme, seed, value, digits_a=a, digits_b=b)
            for (a, b), each in PAIRS.items()
            for seed, value in enumerate(each)
        ]
    )


def depths():
    return frame_of(
        [row(s, seed, d / 10 + up, depth=d) for s, up in (("rope", 0), ("t5", 0.1)) for d in (0, 5) for seed in (0, 1)]
    )


def test_two_groupings_are_a_grid_of_medians():
    text = grouped.as_text(pairs(), ["digits_a", "digits_b"], 0)
    assert text.splitlines()[:4] == [
        "rope · addition",
        "digits_a \\ digits_b     1     2",
        "                  1  0.90  0.50",
        "                  2  0.12     ·",
    ]
    assert "Median of runs (3 of each scheme)" in text and "Diverged trials left out: 0." in text


def test_one_grouping_is_a_line_for_each_value_with_its_spread_and_number():
    text = grouped.as_text(depths(), ["depth"], 2)
    assert "  depth 5: 0.60 [0.60–0.60], n = 2" in text.splitlines() and "left out: 2." in text


def test_the_table_holds_every_trial_in_every_group():
    found = list(csv.DictReader(io.StringIO(csv_of(pairs()))))
    assert len(found) == 9 and {r["trial"] for r in found} == {"rope0", "rope1", "rope2"}
    assert found[0] | {"digits_a": "1", "digits_b": "1", "exact": "100", "value": "1.0"} == found[0]


def test_a_heat_map_shows_the_medians_and_leaves_what_was_not_drawn_empty():
    figure = grouped.draw(pandas.concat([pairs(), pairs("t5")]), ["digits_a", "digits_b"])
    panels = [a for a in figure.axes if a.images]
    assert [a.get_title(loc="left") for a in panels] == ["rope · addition", "t5 · addition"]
    shown = panels[0].images[0].get_array()
    np.testing.assert_allclose(shown.filled(-1), [[0.9, 0.5], [0.125, -1]])
    assert [t.get_text() for t in panels[0].get_yticklabels()] == ["digits_a 1", "digits_a 2"]
    assert panels[0].get_xlabel() == "digits_b"


def test_one_grouping_is_drawn_as_a_line_for_each_scheme_with_every_run():
    figure = grouped.draw(depths(), ["depth"])
    (axes,) = figure.axes
    thick = [line for line in axes.lines if not line.get_label().startswith("_")]
    assert [list(line.get_ydata()) for line in thick] == [[0.0, 0.5], [0.1, 0.6]]
    assert len(axes.lines) == 6, "and a thin line for each of two runs"
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["t5", "rope"], "the best first"


def test_three_groupings_are_text_alone():
    rows = frame_of([row("rope", 0, 0.5, a=1, b=2, c=3)])
    assert "  a 1, b 2, c 3: 0.50 [0.50–0.50], n = 1" in grouped.as_text(rows, ["a", "b", "c"], 0).splitlines()
    with pytest.raises(ValueError, match="A figure shows one grouping or two, and a, b, c are 3; leave some out"):
        grouped.draw(rows, ["a", "b", "c"])
