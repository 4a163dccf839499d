"""One rule decides which cases run by day: it forgets no case, keeps what guards alone, and every family is there."""

import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import night
from tests.night import SIXTEENTH, TURNS, Family, number

HERE = Path(__file__).parent
FAMILY = {"a/": Family("another")}
ALONE = {"a/": Family("another", alone=True)}
IDS = [f"tests/a/test_b.py::test_it[{n}]" for n in range(200)]


class Item:
    """What `move` reads of a collected test."""

    def __init__(self, nodeid, *marks):
        self.nodeid, self.marks = nodeid, list(marks)

    def get_closest_marker(self, name):
        return name if name in self.marks else None

    def add_marker(self, mark):
        self.marks.append(mark.name)


def moved(ids, *marks, families=FAMILY, turn=0, **options):
    items = [Item(nodeid, *marks) for nodeid in ids]
    night.move(items, families, turn=turn, **options)
    return [tuple(item.marks[len(marks) :]) for item in items]


def test_every_family_is_of_files_that_exist_and_has_a_guard():
    files = [str(path.relative_to(HERE)) for path in HERE.rglob("test_*.py")]
    for place, family in night.FAMILIES.items():
        assert family.guard and any(file.startswith(place) for file in files), place


@pytest.mark.parametrize("place", ["golden/", "oracles/", "tasks/test_task_golden.py", "test_published"])
def test_golden_data_and_equations_are_in_no_family(place):
    files = [str(path.relative_to(HERE)) for path in HERE.rglob("test_*.py")]
    among = [file for file in files if file.startswith(place)]
    assert among and all(night.family_of(file) is None for file in among)


def test_a_number_is_of_the_id_alone_and_the_same_in_another_process():
    other = f"from tests.night import number; print(number({IDS[0]!r}))"
    said = subprocess.run([sys.executable, "-c", other], cwd=HERE.parent, capture_output=True, text=True, check=True)
    assert int(said.stdout) == number(IDS[0]) and len(set(map(number, IDS))) == len(IDS)


def test_each_case_runs_by_day_or_in_one_turn_of_a_week():
    turns = [moved(IDS, turn=turn) for turn in range(TURNS)]
    for nodeid, marks in zip(IDS, zip(*turns, strict=True), strict=True):
        counts = Counter(marks)
        if number(nodeid) % SIXTEENTH == 0:
            assert counts == {(): TURNS}
        else:
            assert () in counts or counts == {("ci",): 1, ("nightly",): TURNS - 1}


def test_a_sixteenth_runs_by_day_and_of_each_test_at_least_one():
    assert 4 <= moved(IDS).count(()) <= 25
    for n in range(2, 60):
        assert moved([f"tests/a/test_b.py::test_{n}[{m}]" for m in range(3)]).count(()) >= 1


def test_planted_faults_are_members_only_where_the_family_says_so():
    ids = [f"tests/a/test_b.py::test_a_fault_is_caught[{n}]" for n in range(200)]
    assert set(moved(ids)) == {()}
    assert 4 <= moved(ids, families={"a/": Family("another", faults=True)}).count(()) <= 25


def test_tests_that_share_a_sampler_share_its_day():
    items = [Item(f"tests/a/test_b.py::test_{m}[{n}-9]") for n in range(50) for m in range(3)]
    for item in items:
        item.fixturenames, text = ["draw"], item.nodeid.partition("[")[2].partition("-")[0]
        item.callspec = SimpleNamespace(params={"text": text})
    night.move(items, FAMILY, turn=0)
    days = {tuple(tuple(item.marks) for item in items[n : n + 3]) for n in range(0, 150, 3)}
    assert days == {(marks,) * 3 for marks in ((), ("ci",), ("nightly",))}


def test_what_is_marked_has_no_case_by_day_and_what_waits_for_the_night_stays():
    assert {"ci", "nightly"} == {mark for marks in moved(IDS, "ci") for mark in marks} and () not in moved(IDS, "ci")
    assert set(moved(IDS, "nightly")) == {()}


@pytest.mark.parametrize(
    "nodeid",
    [
        "tests/a/test_b.py::test_planted_faults_are_noticed",
        "tests/a/test_b.py::test_what_has_no_meaning_is_refused",
        "tests/a/test_b.py::test_named",
        "tests/b/test_b.py::test_it",
    ],
)
def test_what_alone_guards_a_fault_runs_by_day(nodeid):
    for turn in range(TURNS):
        assert moved([nodeid], families=ALONE, turn=turn, guards={"a/test_b.py::test_named"}) == [()]
        several = [f"{nodeid}[{n}]" for n in range(50)]
        assert set(moved(several, "guard", families=ALONE, turn=turn)) == {()}


def test_a_test_of_one_case_waits_only_where_the_family_says_so():
    alone = [f"tests/a/test_b.py::test_{n}" for n in range(200)]
    assert set(moved(alone)) == {()}
    assert 4 <= moved(alone, families=ALONE).count(()) <= 25
    assert set(moved(alone, "ci", families=ALONE)) == {()}, "with every .ci/run"
