"""The tables of tests that wait name tests that exist, and mark as many cases as they say."""

import ast
from pathlib import Path

import pytest

from tests import night

HERE = Path(__file__).parent


def names_in(file):
    tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_row_of_the_night_names_a_test_and_its_guard():
    for file, rows in night.NIGHT.items():
        assert rows.keys() <= names_in(file), file
        assert all(row["day"] >= 0 and row["guard"] for row in rows.values()), file


def test_every_row_of_ci_names_a_test_and_none_that_must_run_by_day():
    """Authors' numbers, equations and planted faults run by day, whatever they take."""
    for file, rows in night.CI.items():
        assert rows.keys() <= names_in(file) and all(day >= 0 for day in rows.values()), file
        assert not file.startswith(("golden/", "oracles/", "faults/", "test_published_bugs"))
        assert not [name for name in rows if {"planted", "fault", "faults"} & set(name.split("_"))], file


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
    night.move([late, *cases, other], {"a.py": {"test_it": {"day": day, "guard": "another"}}}, {})
    assert [n for n, case in enumerate(cases) if not case.marks] == kept
    assert late.marks == ["nightly"] and other.marks == []


def test_what_waits_for_the_night_is_not_counted_among_what_waits_for_ci():
    cases = [Item(f"tests/a.py::test_it[{n}]") for n in range(6)]
    night.move(cases, {"a.py": {"test_it": {"day": 3, "guard": "another"}}}, {"a.py": {"test_it": 1}})
    assert [case.marks for case in cases] == [[], ["nightly"], ["ci"], ["nightly"], ["ci"], ["nightly"]]
