"""The README is true: its code runs, its commands exist, its tables are those of the registries.

POSENC_REGENERATE=1 pytest tests/test_readme.py -n0 -k table       writes the tables anew
"""

import os
import re
import shlex
import typing
from pathlib import Path

import jax
import pytest

import posenc
from posenc.catalog import summary
from posenc.core import scheme
from posenc.core.scheme import SCHEMES
from posenc.lab import tasks
from posenc.lab.cli import _GROUPS, listing
from posenc.lab.models.kinds import Attention
from posenc.lab.models.stems import NONE, STEMS
from posenc.lab.results.published import counted, findings
from posenc.lab.results.results import load
from posenc.lab.spec import run
from posenc.lab.spec.committed import record_of
from posenc.lab.spec.experiment_file import from_file
from posenc.lab.spec.presets import PRESETS
from posenc.lab.tasks.task import Layout
from posenc.lab.train import generate

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
COMMANDS = [line.split("#")[0].strip() for line in TEXT.splitlines() if line.startswith("    posenc ")]


def quoted(names):
    return ", ".join(f"`{name}`" for name in sorted(names))


def schemes():
    yield "scheme", "enters at", "idea and source"
    for name in posenc.names():
        found = summary(name)
        yield f"`{name}`", ", ".join(found["enters"]) or "nowhere", found["idea"]


def suites():
    every, named = tasks.names(), tasks.suites()
    yield "suite", f"of {len(every)} tasks"
    for name in named:
        yield f"`{name}`", quoted(tasks.suite(name))
    yield "none", quoted(set(every).difference(*map(tasks.suite, named)))


def coordinates():
    """What each task offers, read off the shapes of a batch; what a whole layout offers is told by the layout."""
    found, layouts = {}, {}
    for name in tasks.names():
        task = tasks.parse(name)
        n = task.sizes.train[1]
        batch = jax.eval_shape(lambda key, task=task, n=n: task.sample(key, n, batch=2, n_max=n), jax.random.key(0))
        layouts.setdefault(task.layout, []).append(name)
        for offered in batch.coords:
            found.setdefault(offered, []).append(name)
    yield "told", "by"
    for offered in sorted(found):
        whole = [layout for layout in Layout if found[offered] == layouts[layout]]
        yield f'"{offered}"', f"every task of the layout `{whole[0].value}`" if whole else quoted(found[offered])


def models():
    yield "model", "directions", "position enters", "idea and source"
    for row in listing.models():
        yield f"`{row['use']}`", ", ".join(row["directions"]), row["position"], row["idea"]


def experiments():
    yield "experiment", "claim", "cost", "verdicts"
    for path in sorted((ROOT / "experiments").glob("*.py")):
        made, record = from_file(path, yes=True), record_of(path)
        counts = counted(findings(made.published, load(record) if record.is_file() else None))
        verdicts = [f"{n} {verdict}" for verdict, n in counts.items() if n]
        told = ", ".join(verdicts) or "nothing published to compare with"
        yield f"`{path.stem}`", made.header.claim, made.header.cost.rstrip("."), told


TABLES = {
    "schemes": schemes,
    "tasks": suites,
    "coordinates": coordinates,
    "models": models,
    "experiments": experiments,
}


def written(name):
    """Where the table of this name stands in the README, as it is now."""
    text = README.read_text(encoding="utf-8")
    return text, re.search(rf"(?<=<!-- {name}: )[^>]*-->\n(.*?)(?=<!-- end of {name} -->)", text, re.DOTALL)


def table(rows):
    cells = [[cell.replace("|", "\\|").replace("<", "&lt;") for cell in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join(["", lines[0], "|---" * len(cells[0]) + "|", *lines[1:], "", ""])


@pytest.mark.parametrize("name", TABLES)
def test_each_table_is_what_is_registered(name):
    text, found = written(name)
    if os.environ.get("POSENC_REGENERATE"):
        README.write_text(text[: found.start(1)] + table(TABLES[name]()) + text[found.end(1) :], encoding="utf-8")
    else:
        assert found[1] == table(TABLES[name]())


def test_every_table_that_says_it_is_checked_is():
    assert sorted(re.findall(r"<!-- (\w+): this table is checked", TEXT)) == sorted(TABLES)


def test_what_a_run_may_set_is_named():
    said = re.search(r"What a run may set.*?\n\n(.*?)\n\n", TEXT, re.DOTALL)[1]
    for name in (*typing.get_args(Attention), *STEMS.names(), NONE):
        assert f"`{name}`" in said, name
    fields = {name for name in re.findall(r"`(\w+)`", said) if name in run.Run.__dataclass_fields__}
    assert fields >= {"attention", "stem", "norm", "dropout", "width", "depth", "heads", "hidden", "then"}


def test_every_preset_is_named():
    said = re.search(r"for `--preset`: (.*?)\.", TEXT, re.DOTALL)[1]
    assert re.findall(r"`(\w+)`", said) == list(PRESETS)


def test_what_is_said_of_generation_is_there():
    said = re.search(r"`posenc\.lab\.generate`: (.*?\.)\n", TEXT, re.DOTALL)[1]
    named = re.findall(r"`(\w+)`", said)
    assert named and all(callable(getattr(generate, name)) for name in named)


def test_the_diagram_is_that_of_the_code():
    drawn = next(line for line in TEXT.splitlines() if line.startswith("    x ─"))
    assert drawn in scheme.__doc__.splitlines()


def test_every_folder_that_is_named_is_there_and_every_package_is_named():
    named = re.findall(r"^    ([\w/]+/)  ", TEXT, re.MULTILINE)
    assert all((ROOT / folder).is_dir() for folder in named)
    packages = {f"posenc/{path.parent.name}/" for path in (ROOT / "posenc").glob("*/__init__.py")}
    assert packages and packages <= set(named)


def test_what_is_listed_is_what_list_lists():
    told = re.search(r"posenc list tasks {5,}# also: (.*)", TEXT)[1]
    assert {"schemes", "tasks", *told.split(", ")} == set(listing.KINDS.strip("{}").split(","))


@pytest.mark.parametrize("n", range(3))
def test_the_import_examples_run(n):
    space: dict = {}
    exec(compile(BLOCKS[n], f"README.md, example {n + 1}", "exec"), space)
    assert space["y"].shape == space.get("q", space["x"] if "x" in space else None).shape
    assert len(BLOCKS[n].strip().splitlines()) <= 12


def test_the_example_of_a_new_scheme_works_and_holds_the_contract():
    space: dict = {"__name__": "readme"}
    try:
        exec(compile(BLOCKS[3], "README.md, a new scheme", "exec"), space)
        recency = posenc.parse("recency")
        assert posenc.check(recency).ok
    finally:
        SCHEMES._classes.pop("recency", None)


def recipes():
    rows = re.search(r"## Recipes\n(.*?)\n### ", TEXT, re.DOTALL)[1].splitlines()
    return [row.split("`")[1] for row in rows if row.startswith("| ") and "`" in row]


@pytest.mark.parametrize("text", recipes())
def test_every_recipe_is_a_text_of_what_it_names(text):
    dims = posenc.Dims(width=32, heads=4, head=8, trained=16, longest=64)
    made = posenc.parse(text)
    assert posenc.parse(posenc.spec(made)) == made and posenc.bind(made, dims)


def test_there_are_recipes():
    assert len(recipes()) > 15


def test_every_equivalence_names_a_test_that_there_is():
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", TEXT)
    assert len(named) > 10
    for file, test in named:
        assert f"\ndef {test}(" in (ROOT / file).read_text(encoding="utf-8")


def test_every_command_in_the_readme_is_one():
    known = {name for group in _GROUPS.values() for name, *_ in group}
    assert len(COMMANDS) > 8
    for line in COMMANDS:
        assert shlex.split(line)[1] in known


def test_every_benchmark_in_the_readme_is_one():
    named = re.findall(r"python -m benchmarks\.(\w+)", TEXT)
    assert named and all((ROOT / "benchmarks" / f"{name}.py").is_file() for name in named)


def test_the_two_commands_stand_on_one_line_each():
    for last in ("posenc quickstart", "pytest -q"):
        assert re.search(rf"^    python3 -m venv \.venv && .*{last}$", TEXT, re.MULTILINE)
