"""Errors on a log axis: what is counted stands where it was counted, and none is told from one."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from posenc.lab.figures import files
from posenc.lab.figures.figures import QUARTER, error_curve, scored, shown, wrong
from posenc.lab.results.results import Results
from tests.lab import made

ASKED = {16: 1000, 32: 4000}


def trial(label, seed, right):
    """One trial with so many right at each size, of those asked."""
    one = made.trial(label, "flip", seed, {16: 1.0, 32: 1.0})
    sums = {str(n): {"correct": k, "scored": ASKED[n], "exact": 0, "rows": 100, "last": 0} for n, k in right.items()}
    return {**one, "evaluations": sums, "validation": sums}


def results(*runs, label="rope", family="rotary"):
    rec = made.record(label, family, "flip", [trial(label, s, right) for s, right in enumerate(runs)], sizes=(16, 32))
    about = {**rec["task"], "metric": "error", "floors": {n: {k: 0.5 for k in made.FLOORS} for n in ("16", "32")}}
    return made.results("made", ({**rec, "task": about},))


def drawn(found):
    (axes,) = error_curve(found).figure.axes
    return axes, {line.get_label(): line for line in axes.get_lines()}


MIXED = ({16: 1000, 32: 3999}, {16: 1000, 32: 3900}, {16: 990, 32: 3000})


def test_no_error_stands_below_one():
    axes, lines = drawn(results(*MIXED))
    none = QUARTER / 4000
    assert lines["rope"].get_ydata()[0] == pytest.approx(none) and axes.get_ylim()[0] < none
    runs = [tuple(line.get_ydata()) for line in axes.get_lines() if line.get_label() == "_run"]
    np.testing.assert_allclose(sorted(runs), [(none, 1 / 4000), (none, 0.025), (0.01, 0.25)])
    assert list(lines["_one error"].get_ydata()) == [1 / 1000, 1 / 4000]


def test_runs_with_and_without_an_error_have_a_median_between():
    _, lines = drawn(results({16: 1000, 32: 4000}, {16: 1000, 32: 3999}))
    assert QUARTER / 4000 < lines["rope"].get_ydata()[1] == pytest.approx((1 + QUARTER) / 2 / 4000)


def test_the_caption_counts_errors_over_all_runs():
    found = results(*MIXED)
    first, marks, counted, *_ = error_curve(found).caption.splitlines()
    assert first == "error rate (up) against size (along): flip; n = 3 runs."
    assert counted.endswith("Errors of all runs together at 16: rope 10 of 3,000.") and "log axis" in counted
    assert "one error" in marks and "thin lines" in marks
    assert scored(found, "flip") == ASKED and wrong(shown(found)[0], ASKED, 16) == (10, 3000)


def test_where_nothing_was_counted_no_rate_is_made_up():
    (record,) = results(*MIXED).records
    lost = tuple(replace(trial, outcome="diverged", evaluations={}) for trial in record.trials)
    with pytest.raises(ValueError, match="Every trial of 'flip' diverged, so there is no error rate to draw"):
        error_curve(Results("made", (replace(record, trials=lost),)))


def test_the_data_of_a_task_that_reports_errors_are_called_accuracies():
    rows = list(csv.DictReader(io.StringIO(files.data(results(*MIXED)))))
    assert "value" not in rows[0] and "error" not in rows[0] and rows[0]["metric"] == "error"
    assert [float(row["accuracy"]) for row in rows if row["size"] == "32"] == [3999 / 4000, 3900 / 4000, 3000 / 4000]
    assert {float(row["floor"]) for row in rows} == {0.5}
