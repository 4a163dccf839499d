"""The order in which a sweep runs its groups: those of equal programs follow one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from posenc.lab.train.training import ResolvedRun, stages

Group = TypeVar("Group")


def together(groups: Mapping[str, Group], runs: Mapping[str, ResolvedRun], steps: int) -> dict[str, Group]:
    """The groups, each with that of its name: those that train by the same programs next to one another, else in the
    order given. A sweep that is stopped has then compiled little that it did not use."""
    found: dict[Any, int] = {}

    def place(name: str) -> int:
        return found.setdefault(tuple(stage.step for stage, _ in stages(runs[name], steps)), len(found))

    return {name: groups[name] for name in sorted(groups, key=place)}
