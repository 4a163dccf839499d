"""A suite in the place of a task: `task=suite:probes`, wherever runs are asked for."""

import json
import subprocess
import sys

import pytest

from posenc import tasks
from posenc.lab import experiment, words
from posenc.lab.experiment import NothingMatches, from_words, grid
from posenc.lab.run import Run
from posenc.lab.toml import from_toml, to_toml

SUITES = ("quick", "chomsky", "kazemnejad", "arithmetic", "recall", "probes", "state")


def of(runs):
    return [run.task for run in runs]


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_of_the_papers_is_one(name):
    suite = tasks.suite(name)
    assert suite and of(grid(Run(), task=f"suite:{name}")) == list(suite)
    for text in suite:
        assert name in tasks.parse(text).suites


def test_the_hierarchy_has_fifteen_tasks():
    assert len(tasks.suite("chomsky")) == 15


def test_a_grid_crosses_the_tasks_of_a_suite():
    made = from_words(["scheme=rope,alibi", "task=suite:quick"], ["model=decoder"])
    quick = list(tasks.suite("quick"))
    assert [(r.scheme, r.task) for r in made.runs] == [(s, t) for s in ("rope", "alibi") for t in quick]
    assert {r.model for r in made.runs} == {"decoder"}


@pytest.mark.parametrize(
    ("given", "more"),
    [("suite:quick", []), ("copy,suite:quick", []), ("suite:quick,copy", []), ("suite:quick,suite:probes", "probes")],
)
def test_a_task_in_two_suites_or_named_beside_one_is_trained_once(given, more):
    found = of(from_words([f"task={given}"]).runs)
    assert len(found) == len(set(found))
    assert set(found) == set(tasks.suite("quick")) | set(tasks.suite(more) if more else ())


def test_a_task_named_twice_is_refused_beside_a_suite_too():
    with pytest.raises(ValueError, match="task is given one value twice"):
        from_words(["task=copy,copy,suite:quick"])


def test_a_run_and_a_setting_of_all_may_name_a_suite():
    for made in (from_words([], ["task=suite:state"]), from_words(["scheme=rope"], ["task=suite:state"])):
        assert of(made.runs) == list(tasks.suite("state"))
    with pytest.raises(ValueError, match="task is given twice"):
        from_words(["task=copy"], ["task=suite:state"])


def test_toml_takes_a_suite_in_each_of_its_parts():
    probes = list(tasks.suite("probes"))
    for text in ('[grid]\ntask = ["suite:probes"]', '[grid]\ntask = "suite:probes"', '[run]\ntask = "suite:probes"'):
        made = from_toml(text)
        assert of(made.runs) == probes
        assert from_toml(to_toml(made)) == made
    text = '[grid]\ntask = ["suite:quick", "suite:probes"]\n[[exclude]]\ntask = "suite:quick"'
    assert of(from_toml(text).runs) == [t for t in probes if t not in tasks.suite("quick")]


def test_only_picks_those_of_a_suite_that_there_are():
    made = from_words(["task=copy,even_pairs,parity_check"])
    assert of(made.only(["task=suite:chomsky"]).runs) == ["even_pairs", "parity_check"]
    with pytest.raises(NothingMatches, match="No run has task=suite:arithmetic"):
        made.only(["task=suite:arithmetic"])


@pytest.mark.parametrize(
    "ask",
    [
        lambda: grid(Run(), task="suite:probe"),
        lambda: from_words(["task=suite:"]),
        lambda: from_words([], ["task=suite:probe"]),
        lambda: from_toml('[grid]\ntask = ["suite:probe"]'),
        lambda: from_words(["task=copy"]).only(["task=suite:probe"]),
    ],
)
def test_an_unknown_or_empty_suite_is_refused_and_the_known_ones_are_named(ask):
    with pytest.raises(ValueError, match=r"^No suite is called '(probe)?'\.") as told:
        ask()
    assert all(name in str(told.value) for name in SUITES)


def test_a_suite_in_the_place_of_one_task_is_refused():
    with pytest.raises(ValueError, match="suite:quick"):
        Run(task="suite:quick")
    with pytest.raises(ValueError, match="is several tasks"):
        from_words(["task=copy"]).changed(["task=suite:quick"])


def test_axes_without_a_suite_need_no_jax():
    program = """
import sys
from posenc.lab.experiment import from_words
from_words(["task=copy,even_pairs", "scheme=rope"])
assert "jax" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_values_of_other_settings_are_left_alone():
    assert words.expanded("scheme", ["suite:quick"]) == ["suite:quick"]
    assert experiment.settings(["task=suite:quick"])[0] == {"task": "suite:quick"}


def test_suites_are_listed_with_their_tasks(capsys):
    from posenc.cli import main

    assert main(["list", "suites", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(SUITES) <= set(rows) and rows["quick"]["use"] == "task=suite:quick"
    assert rows["quick"]["tasks"] == list(tasks.suite("quick"))
