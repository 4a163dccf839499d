"""The table of the night names tests that exist, and marks as many cases as it says."""

import ast
from pathlib import Path

import pytest

from tests import night

HERE = Path(__file__).parent


@pytest.mark.parametrize("file", night.TABLE)
def test_every_row_names_a_test_and_its_guard(file):
    tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
    known = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert night.TABLE[file].keys() <= known
    assert all(row["day"] >= 0 and row["guard"] for row in night.TABLE[file].values())


class Item:
    """What `move` reads of a collected test."""

    def __init__(self, nodeid, marked=False):
        self.nodeid, self.originalname, self.marks = nodeid, nodeid.split("::")[1].split("[")[0], ["nightly"] * marked

    def get_closest_marker(self, name):
        return name if name in self.marks else None

    def add_marker(self, mark):
        self.marks.append(mark.name)


@pytest.mark.parametrize(("day", "kept"), [(0, []), (1, [0]), (2, [0, 3]), (6, list(range(6))), (9, list(range(6)))])
def test_cases_of_the_day_are_spread_over_those_that_were_not_of_the_night(day, kept):
    late, cases = Item("tests/a.py::test_it[late]", True), [Item(f"tests/a.py::test_it[{n}]") for n in range(6)]
    other = Item("tests/a.py::test_other")
    night.move([late, *cases, other], {"a.py": {"test_it": {"day": day, "guard": "another"}}})
    assert [n for n, case in enumerate(cases) if not case.marks] == kept
    assert late.marks == ["nightly"] and other.marks == []
