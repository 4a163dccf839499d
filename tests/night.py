"""What runs by day, what `.ci/run` adds (`-m "ci and not nightly"`), and what waits for the night (`-m nightly`).

By day: authors' numbers, equations, planted faults, and of every other claim the cases that are quick. Tables hold the
rest: ci.toml how many cases of a test stay by day while `.ci/run` takes the others with every change; night.toml how
many of those that are too many even for that. Inside one file `by_day` says it, and the contract has a rule of its own,
tests/contract/covering.py.
"""

import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest


def _read(name: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


NIGHT = _read("night.toml")
"""For each file its tests, each with `day` cases that do not wait for the night and the `guard` of the others."""
CI = _read("ci.toml")
"""For each file its tests, each with the number of cases that stay by day."""


def move(items: Iterable[Any], night: dict[str, Any] = NIGHT, ci: dict[str, Any] = CI) -> None:
    """Mark the cases that wait for the night, and of the others those that wait for `.ci/run`."""
    _mark(items, "nightly", {file: {name: row["day"] for name, row in rows.items()} for file, rows in night.items()})
    _mark(items, "ci", ci)


def _mark(items: Iterable[Any], marker: str, days: dict[str, dict[str, int]]) -> None:
    """Mark all but so many cases of each test, spread evenly over those that do not wait already."""
    found = defaultdict(list)
    for item in items:
        file = item.nodeid.partition("::")[0].removeprefix("tests/")
        day = days.get(file, {}).get(getattr(item, "originalname", ""))
        if day is not None and not item.get_closest_marker("nightly"):
            found[file, item.originalname, day].append(item)
    for (_, _, day), cases in found.items():
        kept = {len(cases) * n // day for n in range(day)} if day < len(cases) else set(range(len(cases)))
        for at in set(range(len(cases))) - kept:
            cases[at].add_marker(getattr(pytest.mark, marker))


def by_day(every: Iterable[Any], chosen: Collection[Any]) -> list[Any]:
    """Every case, for `parametrize`: the chosen as they are, the rest left to the night. A tuple is one of several
    arguments."""
    late = lambda one: pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=pytest.mark.nightly)  # noqa: E731
    return [one if one in chosen else late(one) for one in every]
