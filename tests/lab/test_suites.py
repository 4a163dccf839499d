"""A suite in the place of a task: `task=suite:probes`, wherever runs are asked for."""

import dataclasses
import json
import subprocess
import sys

import pytest

from posenc.lab import tasks
from posenc.lab.run import plan
from posenc.lab.spec import settings
from posenc.lab.spec.experiment import NothingMatches, from_words, grid
from posenc.lab.spec.presets import PRESETS
from posenc.lab.spec.run import Plan, Run
from posenc.lab.spec.suites import SUITES as TOLD
from posenc.lab.spec.suites import Suite, named
from posenc.lab.spec.toml import from_toml, to_toml
from posenc.lab.train import needs
from posenc.lab.train.training import resolve
from tests.cli.conftest import left as left  # fixtures
from tests.cli.conftest import posenc as posenc
from tests.night import by_day

SUITES = ("quick", "chomsky", "kazemnejad", "arithmetic", "recall", "probes", "state")


def of(runs):
    return [run.task for run in runs]


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


@pytest.mark.parametrize("grid", ["scheme=rope,rope(base=10000.0)", "then=0.5 rope,0.5 rope(base=10000.0)"])
def test_one_run_in_two_spellings_is_refused(grid):
    experiment = from_words([grid, "task=copy"], ["width=16", "heads=2", "depth=1", "length=6", "steps=4"])
    with pytest.raises(ValueError, match="two spellings"):
        plan.resolved_runs(experiment)


def test_a_run_and_a_setting_of_all_may_name_a_suite():
    for made in (from_words([], ["task=suite:state"]), from_words(["scheme=rope"], ["task=suite:state"])):
        assert of(made.runs) == list(tasks.suite("state"))
    for words in ((["task=copy"], ["task=suite:state"]), (["task=copy,copy,suite:quick"],)):
        with pytest.raises(ValueError, match="task.* twice"):
            from_words(*words)


def test_only_picks_those_of_a_suite_that_there_are():
    made = from_words(["task=copy,even_pairs,parity_check"])
    assert of(made.only(["task=suite:chomsky"]).runs) == ["even_pairs", "parity_check"]
    with pytest.raises(NothingMatches, match="task=suite:arithmetic"):
        made.only(["task=suite:arithmetic"])


@pytest.mark.parametrize(
    "ask",
    [
        lambda: grid(Run(), task="suite:probe"),
        lambda: from_words(["task=suite:"]),
        lambda: from_words([], ["task=suite:probe"]),
        lambda: from_toml('[run]\ntask = "suite:probe"'),
        lambda: from_words(["task=copy"]).only(["task=suite:probe"]),
    ],
)
def test_an_unknown_or_empty_suite_is_refused_and_the_known_ones_are_named(ask):
    with pytest.raises(ValueError, match=r"'(probe)?'") as told:
        ask()
    assert all(name in str(told.value) for name in SUITES)


def test_a_suite_in_the_place_of_one_task_is_refused():
    with pytest.raises(ValueError, match="suite:quick"):
        Run(task="suite:quick")
    with pytest.raises(ValueError, match="several"):
        from_words(["task=copy"]).changed({"task": "suite:quick"})


def test_axes_without_a_suite_need_no_jax():
    program = """
import sys
from posenc.lab.spec.experiment import from_words
from_words(["task=copy,even_pairs", "scheme=rope"])
assert "jax" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_values_of_other_settings_are_left_alone():
    assert settings.expanded("scheme", ["suite:quick"]) == ["suite:quick"]
    assert settings.typed({"task": "suite:quick"})[0] == {"task": "suite:quick"}


def test_suites_are_listed_with_their_tasks(capsys):
    from posenc.lab.cli import main

    assert main(["list", "suites", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(SUITES) <= set(rows) and rows["quick"]["use"] == "task=suite:quick"
    assert rows["quick"]["tasks"] == list(tasks.suite("quick"))
    assert rows["quick"]["model"] == ["decoder", "encoder"] and rows["chomsky"]["presets"] == ["ruoss"]
    copy = rows["quick"]["tasks"].index("copy")
    assert rows["quick"]["lengths"][copy] == 20


EVERY = pytest.mark.parametrize("name", tasks.suites())


def can_train(made):
    """Every run has a model and sizes that its task takes, in training and in evaluation."""
    for run in made.runs:
        cell = resolve(run)
        for n in plan.evaluated(cell, made.plan):
            cell.task.check_size(n)
            assert run.longest is None or n <= run.longest


@EVERY
def test_every_suite_of_ours_says_how_it_trains(name):
    suite = TOLD[name]
    assert suite.idea.endswith(".") and set(suite.presets) <= set(PRESETS) and "model" in suite.run
    assert set(suite.apart) <= set(tasks.suite(name)), "of tasks that it has"
    assert {PRESETS[p].run.task.partition("(")[0] for p in suite.presets} <= set(tasks.suite(name))


@EVERY
def test_every_suite_trains_as_it_stands(name):
    made = from_words([f"task=suite:{name}", "scheme=nope,rope"])
    assert made.suites == (name,) and len(made.runs) == 2 * len(tasks.suite(name))
    can_train(made)


@pytest.mark.ci
@pytest.mark.parametrize("name", by_day(tasks.suites(), ["quick"]))
def test_every_suite_is_planned_as_it_stands(name, monkeypatch):
    monkeypatch.setattr(needs, "memory", lambda: 16 * 2**30)
    assert plan.resolved_runs(from_words([f"task=suite:{name}", "scheme=nope,rope"]))


@pytest.mark.parametrize(("preset", "name"), [(p, suite.name) for suite in TOLD.values() for p in suite.presets])
def test_a_suite_trains_in_each_setting_that_its_tasks_were_published_in(preset, name):
    made = from_words([f"task=suite:{name}", "scheme=nope"], preset=preset)
    lengths = {run.task: run.length for run in made.runs}
    assert lengths == {run.task: run.length for run in from_words([f"task=suite:{name}"]).runs}
    assert {run.width for run in made.runs} == {PRESETS[preset].run.width} and made.plan.lr == PRESETS[preset].plan.lr
    can_train(made)


@pytest.mark.ci
@pytest.mark.parametrize(("preset", "name"), [(p, suite.name) for suite in TOLD.values() for p in suite.presets])
def test_a_task_alone_beside_a_preset_trains_as_in_the_suite_of_its_paper(preset, name):
    of_suite = from_words([f"task=suite:{name}", "scheme=nope"], preset=preset)
    for run in of_suite.runs:
        alone = from_words([], [f"task={run.task}", "scheme=nope"], preset=preset)
        assert alone.runs == (run,)
        moved = run.length != PRESETS[preset].run.length
        assert alone.plan == (dataclasses.replace(PRESETS[preset].plan, sizes=None) if moved else PRESETS[preset].plan)
        toml = from_toml(f'preset = "{preset}"\n[run]\ntask = "{run.task}"\nscheme = "nope"\n')
        assert (toml.runs, toml.plan) == (alone.runs, alone.plan)
        if moved:
            can_train(alone)


def test_settings_of_a_task_leave_it_one_of_its_paper_and_what_is_typed_wins():
    permuted = from_words([], ["task=lego(permute=True)"], preset="kazemnejad")
    assert permuted.runs[0].length == 8 and permuted.plan.sizes is None
    typed = from_words(["task=lego,copy"], ["length=10", "shortest=5"], preset="kazemnejad")
    assert {(run.length, run.shortest) for run in typed.runs} == {(10, 5)}
    can_train(typed)
    assert from_words([], ["task=lego", "sizes=9:17"], preset="kazemnejad").plan.sizes == tuple(range(9, 17))
    other = from_words([], ["task=even_pairs"], preset="kazemnejad")
    assert other.runs[0].length == 20 and other.plan == PRESETS["kazemnejad"].plan, "no task of that paper"
    mixed = from_words(["task=lego,even_pairs"], ["model=decoder"], preset="kazemnejad")
    assert [run.length for run in mixed.runs] == [8, 20] and mixed.plan.sizes is None
    assert from_words([], ["task=mqar"], preset="mqar").runs[0].shortest is None, "256 is of the preset's own task"


@pytest.mark.ci
def test_a_dry_run_beside_a_preset_says_which_length_a_task_takes(posenc, left):
    small = ("--width", "16", "--heads", "2", "--hidden", "16", "--depth", "1", "--seeds", "1", "--steps", "2")
    said = posenc("run", "--preset", "kazemnejad", "--task", "lego", *small, "--dry-run")
    assert said.code == 0 and "lego trains to 8" in said.err and left() == []
    assert posenc("run", "--preset", "kazemnejad", *small, "--dry-run").err.count("\n") == 1


@pytest.mark.ci
def test_sizes_of_a_preset_hold_where_all_tasks_train_at_its_length():
    assert from_words(["task=suite:chomsky"], preset="ruoss").plan.sizes == PRESETS["ruoss"].plan.sizes
    assert from_words(["task=suite:kazemnejad"], preset="kazemnejad").plan.sizes is None
    assert from_words(["task=suite:kazemnejad"], ["sizes=9"], preset="kazemnejad").plan.sizes == (9,)
    assert from_words(["task=suite:probes"], preset="ruoss").plan == PRESETS["ruoss"].plan, "no setting of its papers"


@pytest.mark.parametrize(
    ("planted", "said"),
    [
        ({"apart": {"token_at_index": {"length": 2}}}, "at least 16"),
        ({"apart": {"copy": {"model": "encoder"}}}, "causal"),
    ],
    ids=["a size that a task has not", "a model that cannot do it"],
)
def test_a_suite_that_does_not_stand_is_found(monkeypatch, planted, said):
    monkeypatch.setitem(TOLD, "quick", dataclasses.replace(TOLD["quick"], **planted))
    with pytest.raises(ValueError, match=said):
        can_train(from_words(["task=suite:quick"]))


def test_lengths_are_those_with_which_tasks_were_published():
    """Read anew from the papers' tables, not from the tasks."""
    lengths = {run.task: run.length for name in SUITES[1:] for run in from_words([f"task=suite:{name}"]).runs}
    assert {lengths[task] for task in tasks.suite("chomsky")} == {40}
    for task, length in {"copy": 20, "sort_single": 8, "bitwise_or": 20, "minesweeper": 9, "mqar": 256}.items():
        assert lengths[task] == length
    for task, length in {"flip_flop": 512, "dyck": 64, "word_problem": 16, "same_order": 16, "distance": 32}.items():
        assert lengths[task] == length


def test_quick_is_small():
    made = from_words(["task=suite:quick"])
    assert made.plan == Plan(steps=1500, lr=(3e-4, 1e-3, 3e-3))
    for run in made.runs:
        assert (run.depth, run.width, run.heads, run.batch) == (2, 64, 4, 32)
        assert tasks.parse(run.task).tokens(run.length) <= 64


def test_what_is_typed_wins_over_a_suite_also_at_its_usual_value():
    """40, 64 and 2000 are the defaults of `Run` and `Plan`; a suite must not take the place of what somebody typed."""
    typed = ["length=40", "model=decoder", "batch=64", "steps=2000", "lr=1e-3"]
    made = from_words(["task=suite:quick"], typed)
    assert {(run.length, run.model, run.batch) for run in made.runs} == {(40, "decoder", 64)}
    assert made.plan == Plan()
    crossed = from_words(["task=suite:quick", "length=24,32", "model=decoder"])
    assert {(run.length, run.model, run.batch) for run in crossed.runs} == {(24, "decoder", 32), (32, "decoder", 32)}
    assert from_words(["task=suite:state"], ["shortest=4", "longest=600"]).runs[0].length == 512
    with pytest.raises(
        ValueError, match="The task 'associative_recall' is causal, but model='encoder' is bidirectional"
    ):
        can_train(from_words(["task=suite:quick"], ["model=encoder"]))


def test_toml_says_a_suite_as_words_do():
    settings = from_words(["task=suite:quick", "scheme=nope"], ["width=32", "steps=10"])
    text = '[run]\nwidth = 32\ntask = "suite:quick"\nscheme = "nope"\n[plan]\nsteps = 10\n'
    listed = text.replace('task = "suite:quick"\n', "")
    assert from_toml('runs = [{task = "suite:quick"}]\n' + listed).runs == from_toml(text).runs
    made = from_toml(text)
    assert made.runs == settings.runs and made.plan == settings.plan and made.suites == settings.suites == ("quick",)
    assert from_toml(to_toml(made)).runs == made.runs, "written out, it needs no suite"


def test_a_task_beside_a_suite_is_as_usual_unless_the_suite_has_it():
    made = from_words(["task=copy,even_pairs,suite:quick"])
    copy, even, *_ = made.runs
    assert copy.length == 20 and copy.batch == 32 and even == Run(task="even_pairs")
    assert made.plan == Plan(), "there is one plan for all, and no suite has them all"
    first = {run.task: run.length for run in from_words(["task=suite:quick,suite:state"]).runs}
    assert first["flip_flop"] == 32 and first["dyck"] == 64
    assert from_words(["task=suite:quick,suite:state"]).plan == Plan(), "these two disagree"


def test_a_task_alone_and_a_base_that_says_all_are_left_alone():
    assert from_words(["task=flip_flop"]).runs == (Run(task="flip_flop"),)
    assert {run.length for run in grid(Run(length=12), task="suite:quick")} == {12}


def test_a_suite_of_somebody_else_trains_at_its_tasks_lengths(monkeypatch):
    from posenc.lab.tasks.task import TASKS

    for name in ("copy", "dyck"):
        monkeypatch.setattr(TASKS.find(name), "suites", ("mine",))
    assert named(["suite:mine"]) == (Suite("mine"),)
    assert [run.length for run in from_words(["task=suite:mine"]).runs] == [20, 64]


@pytest.mark.ci
def test_a_dry_run_shows_what_a_suite_chose(posenc, left):
    said = posenc("run", "--task", "suite:quick", "--model", "decoder", "--steps", "4", "--seeds", "1", "--dry-run")
    first, *rest = said.out.splitlines()
    assert said.code == 0 and said.err == "" and left() == []
    assert first.startswith("suite:quick: steps=4, lr=0.0003,0.001,0.003, seeds=1, batch=32")
    assert (
        "  decoder, length 20: copy" in rest and "  decoder, length 32: flip_flop, token_at_index, token_k_back" in rest
    )
