"""What runs by night (`-m nightly`) and what guards it by day, in one table; `by_day` does the same inside one file.

A test listed here keeps as many of its cases by day as its row says, spread evenly over all of them. A case that is
named on the command line always runs. The whole contract of every scheme has its own rule: tests/contract/covering.py.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import pytest


class Row(NamedTuple):
    """`day` cases of the test `name` in `file` run by day; `guard` protects by day what the rest protects."""

    file: str
    name: str
    day: int
    guard: str


ENGINE = "tests/contract runs the covering schemes through the same code; the cases kept take every branch once"
BATCH = "tests/tasks/test_task_golden.py holds every task's batch bit for bit, and the oracles judge every task"
EQUATION = "the equations in tests/models/test_attentions.py and test_models.py"
TWO_STEPS = "one run of another file takes the same path; plans, labels, records and figures of all files stay daily"

TABLE = (
    Row("cli/test_bench.py", "test_every_kernel_that_serves_is_timed_and_the_choice_of_auto_is_marked", 0, "test_equal"),
    Row("cli/test_extend.py", "test_what_new_writes_passes_check", 0, "the test that `new` writes runs by day"),
)
"""Every test of which some cases wait for the night."""


def move(items: Iterable[Any]) -> None:
    """Mark the cases that wait for the night."""
    rows = {(row.file, row.name): row.day for row in TABLE}
    found = defaultdict(list)
    for item in items:
        key = item.nodeid.partition("::")[0].removeprefix("tests/"), getattr(item, "originalname", item.name)
        if key in rows and not item.get_closest_marker("nightly"):
            found[key].append(item)
    for key, cases in found.items():
        day = rows[key]
        kept = {len(cases) * n // day for n in range(day)} if day < len(cases) else set(range(len(cases)))
        for at in set(range(len(cases))) - kept:
            cases[at].add_marker(pytest.mark.nightly)


def by_day(every: Iterable[Any], chosen: Collection[Any]) -> list[Any]:
    """Every case, for `parametrize`: the chosen as they are, the rest left to the night. A tuple is one of several
    arguments."""
    late = lambda one: pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=pytest.mark.nightly)  # noqa: E731
    return [one if one in chosen else late(one) for one in every]
