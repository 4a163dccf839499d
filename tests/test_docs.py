"""The README and docs/ are true: their tables are those of the registries, and what they name exists.

POSENC_REGENERATE=1 pytest tests/test_docs.py -n0 -k table       writes the tables again
`tests/test_docs_commands.py` runs their commands and examples.
"""

import ast
import contextlib
import importlib.util
import os
import re
from pathlib import Path

import jax
import pytest

import posenc
from posenc.catalog.schemes import summary
from posenc.core import scheme
from posenc.lab import cli, tasks
from posenc.lab.cli import claims, listing, templates
from posenc.lab.results.published import count_seen
from posenc.lab.results.results import load
from posenc.lab.results.verdicts import count_verdicts, findings
from posenc.lab.spec.abilities import ABILITIES
from posenc.lab.spec.committed import record_of
from posenc.lab.spec.experiment_file import from_file
from posenc.lab.tasks.task import Layout
from tests.huggingface import page as huggingface
from tests.test_architecture import ORDER, tree

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for path in (*map(ROOT.joinpath, ("README.md", "CONTRIBUTING.md")), *sorted((ROOT / "docs").glob("*.md")))
}
TEXT = {name: path.read_text(encoding="utf-8") for name, path in PAGES.items()}
EXPERIMENTS = ROOT / "experiments"
ALIASES = ("tasks", "models")
"""Modules in the library's namespace that stand for packages of the laboratory."""


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


def abilities():
    yield "ability", "what is asked for", "tasks"
    for name, idea in ABILITIES.items():
        yield name, idea, quoted(task for task in tasks.names() if tasks.parse(task).ability == name)


def coordinates():
    """What each task offers, read off the shapes of a batch; what a whole layout offers is named by the layout."""
    found, layouts = {}, {}
    for name in tasks.names():
        task = tasks.parse(name)
        n = task.sizes.train[1]
        batch = jax.eval_shape(lambda key, task=task, n=n: task.sample(key, n, batch=2, n_max=n), jax.random.key(0))
        layouts.setdefault(task.layout, []).append(name)
        for offered in batch.coords:
            found.setdefault(offered, []).append(name)
    yield "coordinate", "offered by"
    for offered in sorted(found):
        whole = [layout for layout in Layout if found[offered] == layouts[layout]]
        yield f'"{offered}"', f"every task of the layout `{whole[0].value}`" if whole else quoted(found[offered])


def models():
    yield "model", "directions", "position enters", "idea and source"
    for row in listing.models():
        yield f"`{row['use']}`", ", ".join(row["directions"]), row["position"], row["idea"]


def experiments():
    yield "experiment", "claim", "cost", "published claims", "checked against", "our own claims"
    every = []
    for path in sorted(EXPERIMENTS.glob("*.py")):
        made, record = from_file(path, yes=True), record_of(path)
        found = findings(made.published, load(record) if record.is_file() else None, made.header.attempted)
        theirs, ours = map(claims.verdicts, count_verdicts(found).values())
        said = (made.header.claim, made.header.cost.rstrip("."))
        yield (
            f"[`{path.stem}`](../experiments/{path.stem}.md)",
            *said,
            theirs,
            claims.sightings(count_seen(made.published)),
            ours,
        )
        every += found
    seen, verdicts = count_seen(one.published for one in every), map(claims.verdicts, count_verdicts(every).values())
    yield "all", "", "", next(verdicts), claims.sightings(seen), next(verdicts)


TABLES = {
    "schemes": ("docs/schemes.md", schemes),
    "tasks": ("docs/tasks.md", suites),
    "abilities": ("docs/tasks.md", abilities),
    "coordinates": ("docs/tasks.md", coordinates),
    "models": ("docs/models.md", models),
    "experiments": ("docs/experiments.md", experiments),
    "read": ("docs/huggingface.md", huggingface.read),
    "refused": ("docs/huggingface.md", huggingface.refused),
}


def written(name):
    """Where the table of this name stands in its page, as the page is now."""
    text = PAGES[TABLES[name][0]].read_text(encoding="utf-8")
    return text, re.search(rf"(?<=<!-- {name}: )[^>]*-->\n(.*?)(?=<!-- end of {name} -->)", text, re.DOTALL)


def table(rows):
    cells = [[cell.replace("|", "\\|").replace("<", "&lt;") for cell in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join(["", lines[0], "|---" * len(cells[0]) + "|", *lines[1:], "", ""])


@pytest.mark.ci
@pytest.mark.parametrize("name", TABLES)
def test_each_table_is_what_is_registered(name):
    text, found = written(name)
    page, rows = TABLES[name]
    if os.environ.get("POSENC_REGENERATE"):
        PAGES[page].write_text(text[: found.start(1)] + table(rows()) + text[found.end(1) :], encoding="utf-8")
    else:
        assert found[1] == table(rows())


def test_the_readme_links_every_page():
    linked = set(re.findall(r"\]\(((?:docs/)?[\w-]+\.md)", TEXT["README.md"]))
    assert linked == set(PAGES) - {"README.md"} | {"CHANGELOG.md"}


def anchors(text):
    """The headings of a page, as GitHub links them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_and_every_file_that_is_named_is_there(page):
    for target in re.findall(r"\]\(([^)]+)\)", TEXT[page]):
        file, _, heading = target.partition("#")
        found = (PAGES[page].parent / file).resolve() if file else PAGES[page]
        assert found.exists(), target
        assert not heading or heading in anchors(found.read_text(encoding="utf-8")), target
    for file in re.findall(r"`((?:posenc|tests|experiments|benchmarks|docs)/[\w/.]*)`", TEXT[page]):
        assert (ROOT / file).exists(), file


@pytest.mark.parametrize("page", PAGES)
def test_every_python_name_is_there(page):
    """`posenc.nnx.Attention(...)`, `posenc.lab.train.generate`: modules and what they hold."""
    for dotted in re.findall(r"(?:`|^ +)(posenc(?:\.\w+)+)", TEXT[page], re.MULTILINE):
        if dotted not in ("posenc.schemes", "posenc.tasks"):  # groups of entry points
            assert resolved(dotted) is not None


def test_the_page_on_tasks_names_all_that_their_public_module_gives():
    rows = re.findall(r"^\| (`.*`) \|", TEXT["docs/add-a-task.md"], re.MULTILINE)
    nodes = [node for node in tree("posenc.tasks").body if isinstance(node, ast.ImportFrom)]
    given = {alias.asname for node in nodes for alias in node.names} - {None}
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == given
    assert not [line for line in templates.TASK.splitlines() if line.startswith("from posenc.tasks.")]


def resolved(dotted):
    found, *rest = importlib.import_module("posenc"), *dotted.split(".")[1:]
    for name in rest:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(f"{found.__name__}.{name}") if hasattr(found, "__path__") else None
        found = getattr(found, name)
    return found


def test_every_folder_of_the_layout_is_there_and_every_package_is_in_it():
    named = re.findall(r"^    ([\w/]+/) ", TEXT["docs/code.md"], re.MULTILINE)
    assert all((ROOT / folder).is_dir() for folder in named)
    packages = {f"{path.parent.relative_to(ROOT)}/" for path in (ROOT / "posenc").rglob("__init__.py")}
    assert packages - {"posenc/", "posenc/lab/"} <= set(named)


def test_the_picture_of_the_layout_is_the_order_of_imports():
    picture = re.search(r"```text\nlaboratory (.*?)```", TEXT["docs/code.md"], re.DOTALL)[1].replace("library", "")
    drawn = [set(line.split()) for line in reversed(picture.strip().splitlines())]
    levels = [line for line in ORDER.strip().splitlines() if line != "__main__"]
    assert drawn == [{name.removeprefix("lab.") for name in level.split() if name not in ALIASES} for level in levels]


def test_the_hooks_of_the_page_are_those_of_the_code():
    rows = re.search(r"## The hooks\n(.*?)\n\n[^|]", TEXT["docs/add-a-scheme.md"], re.DOTALL)[1]
    named = re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in rows.splitlines() if row.startswith("| `")))
    drawn = re.findall(r"[a-z_]+", " ".join(line for line in TEXT["README.md"].splitlines() if "─►" in line))
    assert named == [word for word in drawn if hasattr(scheme.Scheme, word) and word != "scale"]


def test_the_exit_codes_are_those_of_the_command_line():
    rows = re.findall(r"^\| (\d+) \|", TEXT["docs/cluster.md"], re.MULTILINE)
    assert [*map(int, rows)] == [cli.OK, cli.FAILED, cli.USAGE, cli.NOTHING, cli.DISK, cli.PREEMPTED, cli.STOPPED]


def recipes():
    rows = re.search(r"## Recipes\n(.*?)\n## ", TEXT["docs/schemes.md"], re.DOTALL)[1].splitlines()
    return [row.split("`")[1] for row in rows if row.startswith("| ") and "`" in row]


@pytest.mark.parametrize("text", recipes())
def test_every_recipe_is_a_text_of_what_it_names(text):
    dims = posenc.Dims(width=32, heads=4, head=8, trained=16, longest=64)
    made = posenc.parse(text)
    assert posenc.parse(posenc.spec(made)) == made and posenc.bind(made, dims)
