"""The README is true: its code runs, its commands exist, its table is the registry's.

POSENC_REGENERATE=1 pytest tests/test_readme.py -n0       writes the table anew
"""

import os
import re
import shlex
from pathlib import Path

import pytest

import posenc
from posenc.catalog import summary
from posenc.scheme import SCHEMES

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
MARKS = re.compile(r"(<!-- schemes[^>]*-->\n)(.*?)(<!-- end of schemes -->)", re.DOTALL)


def table() -> str:
    rows = ["", "| scheme | enters at | idea and source |", "|---|---|---|"]
    for name in posenc.names():
        found = summary(name)
        idea = found["idea"].replace("|", "\\|").replace("<", "&lt;")
        rows.append(f"| `{name}` | {', '.join(found['enters']) or 'nowhere'} | {idea} |")
    return "\n".join([*rows, "", ""])


def test_the_table_of_schemes_is_the_registry():
    if os.environ.get("POSENC_REGENERATE"):
        (ROOT / "README.md").write_text(MARKS.sub(lambda m: m[1] + table() + m[3], TEXT), encoding="utf-8")
    else:
        assert MARKS.search(TEXT)[2] == table()


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
        scheme = posenc.parse("recency")
        assert posenc.check(scheme).ok
    finally:
        SCHEMES._classes.pop("recency", None)


def recipes():
    rows = re.search(r"## Recipes\n(.*?)\n### ", TEXT, re.DOTALL)[1].splitlines()
    return [row.split("`")[1] for row in rows if row.startswith("| ") and "`" in row]


@pytest.mark.parametrize("text", recipes())
def test_every_recipe_is_a_text_of_what_it_names(text):
    dims = posenc.Dims(width=32, heads=4, head=8, trained=16, longest=64)
    scheme = posenc.parse(text)
    assert posenc.parse(posenc.spec(scheme)) == scheme and posenc.bind(scheme, dims)


def test_there_are_recipes():
    assert len(recipes()) > 15


def test_every_equivalence_names_a_test_that_there_is():
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", TEXT)
    assert len(named) > 10
    for file, test in named:
        assert f"\ndef {test}(" in (ROOT / file).read_text(encoding="utf-8")


def test_every_command_in_the_readme_is_one():
    from posenc.cli import _GROUPS

    known = {name for group in _GROUPS.values() for name, *_ in group}
    lines = [line.split("#")[0].strip() for line in TEXT.splitlines() if line.startswith("    posenc ")]
    assert len(lines) > 8
    for line in lines:
        assert shlex.split(line)[1] in known


def test_the_two_commands_stand_on_one_line_each():
    for last in ("posenc quickstart", "pytest -q"):
        assert re.search(rf"^    python3 -m venv \.venv && .*{last}$", TEXT, re.MULTILINE)
