"""The benchmark of sampling: which runs it takes, what it draws, what it says. No clock judges here."""

import json
import sys

import jax
import pytest

from benchmarks import side
from benchmarks import tasks as benchmark
from posenc.lab import tasks

TINY = {"width": 8, "heads": 2, "depth": 1, "batch": 4}


def cost(name, batch, step, slowest=1.0):
    """A task whose batch and step take so many seconds; the slowest round of its batches took so many times as long."""
    drawn = side.Row(name, (10 * batch, 10 * batch, 10 * batch * slowest), 10, 0.1, 2**20)
    return benchmark.Cost(drawn, side.Row(name, (2 * step,) * 3, 2, 3.0, 2**20), 7)


@pytest.mark.ci
@pytest.mark.parametrize("name", ["even_pairs", "sum_mod"])
def test_both_programs_of_a_task_are_timed(name):
    cell = benchmark.cell(name, **TINY)
    found = benchmark.measure(cell, 2)
    assert found.sampling.name == found.step.name == name and found.tokens == cell.task.tokens(cell.run.length)
    assert [len(row.seconds) for row in (found.sampling, found.step)] == [2, 2]
    assert found.share > 0


def test_a_suite_is_measured_and_kept(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(benchmark, "measure", lambda cell, rounds: cost(cell.run.task, 0.001, 0.1 / rounds))
    monkeypatch.setattr(sys, "argv", ["tasks", "--suite", "translation", "--rounds", "2", "--json", f"{tmp_path}/a"])
    benchmark.main()
    kept = json.loads((tmp_path / "a").read_text())
    assert [row["task"] for row in kept["rows"]] == list(tasks.suite("translation"))
    assert {row["share"] for row in kept["rows"]} == {0.02} and kept["machine"]["jax"] == jax.__version__
    monkeypatch.setattr(sys, "argv", ["tasks", "--quick"])
    benchmark.main()
    said = capsys.readouterr().out
    assert f"0 of {len(tasks.suite('quick'))} tasks" in said and "--quick" in said
    monkeypatch.setattr(sys, "argv", ["tasks", "--suite", "nosuch"])
    with pytest.raises(SystemExit):
        benchmark.main()
    assert "invalid choice: 'nosuch'" in capsys.readouterr().err
