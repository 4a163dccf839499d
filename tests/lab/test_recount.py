"""Floors counted again: those of the task that a record was evaluated on, or one sentence that says why not."""

import pytest

from posenc.lab.cli import main
from posenc.lab.results.recount import recounted
from posenc.lab.results.results import load
from posenc.lab.store import records
from posenc.lab.tasks import parse
from posenc.lab.tasks.floors import floors_by_metric
from tests.lab import made

SIZES = (8, 16, 24)
BACK = "token_k_back(k=1, symbols=4)"


def results(task, metric="token"):
    rec = made.record("rope", "rotary", task, [made.trial("rope", task, 0, dict.fromkeys(SIZES, 0.5))], SIZES)
    rec["task"]["metric"] = metric
    return made.results("older", [rec])


@pytest.mark.parametrize("task", [BACK, f"{BACK}, trained on token_k_back(k=2, symbols=4)"])
def test_floors_are_those_of_the_task_that_was_evaluated_on(task):
    (record,) = recounted(results(task)).records
    counted = floors_by_metric(parse(BACK), SIZES, made.TRAINED[1])
    assert record.task.floors == counted["token"] != results(task).records[0].task.floors
    assert (record.task.floors_last, record.task.floors_beyond) == (counted["last"], counted["beyond"])
    assert record.task.label == task


def test_a_task_that_this_version_does_not_have_is_named():
    with pytest.raises(
        ValueError, match="The record of 'rope' was evaluated on 'copi', which this version cannot count"
    ):
        recounted(results("copi, trained on copy"))


def test_a_task_of_another_metric_by_now_is_refused():
    with pytest.raises(ValueError, match="'rope' on '.*' counts 'exact', but this version's task counts token, last"):
        recounted(results(BACK, "exact"))


def test_the_command_writes_the_bundle_or_says_why_not_in_one_sentence(tmp_path, capsys):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    records.write_bundle(old, "older", results(f"{BACK}, trained on copy").records, [])
    assert main(["export", str(old), "--bundle", str(new), "--recount"]) == 0
    assert load(new).records[0].task.floors_beyond is not None
    records.write_bundle(old, "older", results(BACK, "exact").records, [])
    capsys.readouterr()
    assert main(["export", str(old), "--bundle", str(new), "--recount"]) == 2
    said = capsys.readouterr().err
    assert "evaluate it again" in said and "Traceback" not in said
