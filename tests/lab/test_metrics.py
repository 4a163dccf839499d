"""Results by another metric than their task's: what the records counted, and nothing that they did not."""

import pytest

from posenc.lab.figures.tables import table
from posenc.lab.results.results import best_floor, floors
from tests.lab import made

CURVE = {8: 1.0, 16: 0.9, 24: 0.6, 32: 0.5}


def results(metric="token", change=dict, outcome="done"):
    trials = [made.trial("rope", "copy", seed, CURVE, outcome=outcome) for seed in range(3)]
    for trial in trials:
        for size, counts in trial["evaluations"].items():
            trial["evaluations"][size] = change(counts | {"exact": 30, "last": int(size)})
    record = made.record("rope", "rotary", "copy", trials)
    record["task"]["metric"] = metric
    return made.results("one", [record])


def values(found):
    return {row.size: row.value for row in found.rows() if row.seed == 0}


def test_each_metric_is_the_ratio_of_its_counts():
    assert values(results().by("accuracy")) == CURVE
    assert values(results().by("exact")) == dict.fromkeys(CURVE, 0.3)
    assert values(results().by("last")) == {n: n / 100 for n in CURVE}
    assert values(results("exact").by("accuracy")) == CURVE


@pytest.mark.parametrize("own, metric", [("token", "accuracy"), ("error", "accuracy"), ("exact", "exact")])
def test_the_metric_of_the_task_changes_nothing(own, metric):
    assert results(own).by(metric).records == results(own).records


def test_floors_of_another_metric_are_not_made_up():
    (whole,) = results().by("exact").records
    assert floors(whole.task) == {n: {} for n in made.SIZES} and best_floor(whole.task, [24]) is None
    (last,) = results().by("last").records
    assert floors(last.task) == {n: {"uniform": 0.1} for n in made.SIZES}
    (error,) = results("error").by("last").records
    assert floors(error.task) == {n: {"uniform": 0.9} for n in made.SIZES}, "a share right, and no error"


@pytest.mark.parametrize("metric, value", [("last", 0.1), ("exact", 0.0)])
def test_a_diverged_run_is_a_guess(metric, value):
    assert set(values(results(outcome="diverged").by(metric)).values()) == {value}


def test_a_table_says_which_metric_it_shows():
    assert "accuracy at the last token" in table(results().by("last"))
    assert "whole answers right" in table(results().by("exact"))


def test_what_was_not_counted_is_refused():
    older = results(change=lambda counts: {k: v for k, v in counts.items() if k != "last"})
    with pytest.raises(ValueError, match="on 'copy' did not count 'last' at size 8; read them by 'token'"):
        older.by("last")
    with pytest.raises(ValueError, match="No metric is called 'first'; take one of accuracy, exact, last, beyond"):
        results().by("first")
