"""`posenc plot` of a run that trains still, and of an experiment by any figure."""

import csv
import io
import shutil

import pytest

from tests.lab import made
from tests.test_docs import EXPERIMENTS


@pytest.fixture
def planned(posenc):
    """A run of which nothing has ended."""
    from posenc.lab.store import folder as store

    folder = store.create("half")
    made.write_plan(folder, made.plan(made.rope(), "g0"))


@pytest.mark.parametrize("figure", ["curves", "steps", "place", "excess", "length"])
def test_a_run_that_trains_still_has_nothing_to_draw_and_is_not_to_be_trained_again(refuse, planned, figure):
    sentence = refuse("plot", "half", "--figure", figure)
    assert "has a result yet" in sentence and "`posenc status half` says how far" in sentence
    assert "--name" not in sentence and refuse("compare", "half", "rope", "alibi") == sentence


@pytest.mark.ci
def test_an_experiment_is_drawn_by_any_figure_and_metric(posenc, tmp_path):
    shutil.copytree(EXPERIMENTS / "records", tmp_path / "experiments" / "records")
    shutil.copy(EXPERIMENTS / "length.py", tmp_path / "experiments")
    path = "experiments/length.py"
    assert posenc("plot", path, "--figure", "heatmap", "-o", "here").code == 0
    assert posenc("plot", path, "--figure", "length", "--metric", "last", "-o", "here", "--venue", "acl").code == 0
    for name, metric in {"length.length.acl-column": "last", "length.heatmap": "token"}.items():
        rows = csv.DictReader(io.StringIO((tmp_path / "here" / f"{name}.csv").read_text()))
        assert {row["metric"] for row in rows} == {metric}, "by default that of the experiment"
    asked = posenc("plot", path, "--metric", "last")
    assert asked.code == 2 and "`--figure length --metric last`" in asked.err
    without = posenc("plot", path, "--figure", "excess")
    assert without.code == 2 and "hold no exact losses, which only tasks such as 'copies' have" in without.err
