"""Every command and every Python example of the README and docs/ runs, in the order of its page, in an empty folder.

By day a run "mine" is finished already, commands that train only plan, and those of `SLOW` wait for the night. At night
all of them run, and training takes a few steps.
"""

import re
import shlex
import shutil
import sys

import jax
import numpy as np
import pytest

import posenc
from posenc.core.scheme import SCHEMES
from posenc.lab import tasks
from posenc.lab.cli import _GROUPS, main
from posenc.lab.tasks.task import TASKS
from posenc.lab.train.training import resolve
from tests.lab import made
from tests.lab.made import unexamined
from tests.test_docs import PAGES, ROOT, TEXT

STEPS = 12
"""So many that a switch after 95 % of them leaves some."""
SLOW = ("bench", "check", "evaluate", "explain all", "explain rope --trained", "generate")
"""Left to the night."""
MINE = {"rope": "rotary", "alibi": "linear", "t5": "bucket"}


def commands(page):
    """The indented lines of a page that call posenc, without what their comments say."""
    return [line.split("#")[0].strip() for line in TEXT[page].splitlines() if line.startswith("    posenc ")]


def slow(line):
    return " ".join(shlex.split(line)[1:]).startswith(SLOW)


def examples(page):
    return re.findall(r"```python\n(.*?)```", TEXT[page], re.DOTALL)


WITH_COMMANDS = [page for page in PAGES if commands(page)]
FIRST = {line: page for page in reversed(PAGES) for line in commands(page)}
"""The first page that has a command; by day it runs there alone."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a text and a copy of the experiments; no module, scheme or task of a page is left behind."""
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "docs" / "schemes.md", tmp_path / "my.txt")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("POSENC_RUNS", raising=False)
    yield tmp_path
    sys.modules.pop("mine", None)
    for registry, name in ((SCHEMES, "mine"), (SCHEMES, "recency"), (TASKS, "first_token")):
        registry._classes.pop(name, None)


def finished(name):
    records = [
        made.rope(range(6), task, label, family) for task in ("before", "copy") for label, family in MINE.items()
    ]
    made.filled(name, records)


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_are_understood(page, folder, monkeypatch, capfd):
    plans = []

    def rehearse(experiment, *_):
        plans.append([resolve(run) for run in experiment.runs])
        return {
            "trials": 1,
            "done": 0,
            "programs": 3,
            "operations": 1e12,
            "seconds": 9.0,
            "device": "cpu",
            "memory": 1.0,
        }

    monkeypatch.setattr("posenc.lab.run.sweep.rehearse", rehearse)
    monkeypatch.setattr("posenc.lab.run.plan.examined", unexamined)
    monkeypatch.setattr("posenc.lab.explain.task_card.WORK", 2**14)  # floors of few examples
    for name in ("mine", "order", "length", "book"):
        finished(name)
    for line in (line for line in commands(page) if FIRST[line] == page):
        _, *words = shlex.split(line)
        if words[0] in ("run", "sweep"):
            words += [] if "--dry-run" in words else ["--dry-run"]
            before = len(plans)
            assert main(words) == 0 and len(plans) == before + 1, (line, capfd.readouterr().err)
        elif slow(line):
            assert words[0] in {name for group in _GROUPS.values() for name, *_ in group}
        else:
            assert main(words) == 0, (line, capfd.readouterr().err)


def shortened(words):
    """The same command with few steps and two seeds, where it trains."""
    if words[0] not in ("run", "sweep"):
        return words
    steps = ["--steps", str(STEPS)] if words[0] == "run" else ["--set", f"steps={STEPS}"]
    kept = [re.sub(r"^steps=\d+$", f"steps={STEPS}", word) for word in words]
    if "--steps" in kept:
        kept[kept.index("--steps") + 1] = str(STEPS)
    if "--seeds" in kept:
        seeds = kept.index("--seeds") + 1
        first = int(kept[seeds].partition(":")[0]) if ":" in kept[seeds] else 0  # others may choose a learning rate
        kept[seeds] = f"{first}:{first + 2}"
    return kept if any(f"steps={STEPS}" in word for word in kept) or "--steps" in kept else [*kept, *steps]


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_run(page, folder, capfd):
    """From nothing but the commands themselves; a page that only reads a run finds it finished."""
    lines = commands(page)
    if not any("--name mine" in line for line in lines):
        finished("mine")
    for line in lines:
        words = shortened(shlex.split(line)[1:])
        assert main(words) == 0, (line, capfd.readouterr().err)


@pytest.mark.parametrize(("page", "n"), [(page, n) for page in PAGES for n in range(len(examples(page)))])
def test_examples_run(page, n, folder):
    finished("mine")
    space = {"__name__": "example"}
    exec(compile(examples(page)[n], f"{page}, example {n + 1}", "exec"), space)
    if "y" in space and "x" in space:
        assert space["y"].shape == space["x"].shape


@pytest.mark.ci
def test_the_example_of_a_scheme_holds_the_contract(folder):
    exec(compile(examples("README.md")[1], "README.md, a scheme", "exec"), {"__name__": "readme"})
    report = posenc.check(posenc.parse("recency"))
    assert report.ok, str(report)


def test_the_example_of_a_task_makes_batches_that_its_oracle_answers(folder):
    exec(compile(examples("docs/add-a-task.md")[0], "docs/add-a-task.md", "exec"), {"__name__": "page"})
    task = tasks.parse("first_token")
    batch = task.sample(jax.random.key(0), 5, batch=4, n_max=8)
    arrays = map(np.asarray, (batch.tokens, batch.prompt, batch.score, batch.targets))
    for tokens, prompt, scored, target in zip(*arrays, strict=True):
        assert task.answer([int(t) for t in tokens[prompt]]) == [int(t) for t in target[scored]]
