"""Which committed records hold which tasks and schemes. No jax."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from posenc.lab.results.results import load
from posenc.lab.spec import committed
from posenc.language.declarations import declarations


def recorded_experiments() -> list[Path]:
    """The experiment files that have a committed record, in the order of their names."""
    return sorted((p for p in committed.files().values() if committed.record_of(p).is_file()), key=lambda p: p.stem)


def experiments_with_task(name: str) -> list[str]:
    """The experiments whose record has runs on a task, with any settings."""
    return [
        path.stem
        for path in recorded_experiments()
        if any(record.task.label.partition("(")[0] == name for record in load(committed.record_of(path)).records)
    ]


def experiments_with_schemes(names: Collection[str]) -> list[str]:
    """The experiments whose record has runs of a scheme, alone or in a sum, with any settings; of several names, those
    in which these are together."""
    return [
        path.stem
        for path in recorded_experiments()
        if any(set(names) <= words_in(record.label) for record in load(committed.record_of(path)).records)
    ]


def schemes_in(label: str) -> set[str]:
    """The schemes of ours that a label names: of "pi(factor=2.0), trained with rope" pi and rope."""
    return words_in(label) & set(declarations("schemes"))


def words_in(label: str) -> set[str]:
    """The words of a label outside quotes, since the value of a setting may be called like a scheme."""
    return set(re.findall(r"\w+", re.sub(r"'[^']*'", "", label)))
