"""What runs by day and what by night (`-m nightly`): the table in night.toml, and `by_day` inside one file.

The contract has a rule of its own, tests/contract/covering.py.
"""

import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest

TABLE: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""For each file its tests, each with `day` cases that stay by day and the `guard` of the others."""


def move(items: Iterable[Any], table: dict[str, dict[str, Any]] = TABLE) -> None:
    """Mark the cases that wait for the night."""
    found = defaultdict(list)
    for item in items:
        file = item.nodeid.partition("::")[0].removeprefix("tests/")
        row = table.get(file, {}).get(getattr(item, "originalname", ""))
        if row and not item.get_closest_marker("nightly"):
            found[file, item.originalname, row["day"]].append(item)
    for (_, _, day), cases in found.items():
        kept = {len(cases) * n // day for n in range(day)} if day < len(cases) else set(range(len(cases)))
        for at in set(range(len(cases))) - kept:
            cases[at].add_marker(pytest.mark.nightly)


def by_day(every: Iterable[Any], chosen: Collection[Any]) -> list[Any]:
    """Every case, for `parametrize`: the chosen as they are, the rest left to the night. A tuple is one of several
    arguments."""
    late = lambda one: pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=pytest.mark.nightly)  # noqa: E731
    return [one if one in chosen else late(one) for one in every]
