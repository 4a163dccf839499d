"""Which committed records hold a task or a scheme. No jax."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection
from pathlib import Path

from posenc.lab.spec import committed
from posenc.lab.store.records import labels


def recorded_experiments() -> list[Path]:
    """The experiment files that have a committed record, in the order of their names."""
    return sorted((p for p in committed.files().values() if committed.record_of(p).is_file()), key=lambda p: p.stem)


def experiments_with_task(name: str) -> list[str]:
    """The experiments whose record has runs on a task, with any settings."""
    return _experiments(lambda scheme, task: task.partition("(")[0] == name)


def experiments_with_schemes(names: Collection[str]) -> list[str]:
    """The experiments whose record has runs of a scheme, alone or in a sum, with any settings; of several names, those
    in which these are together."""
    return _experiments(lambda scheme, task: set(names) <= words_in(scheme))


def _experiments(wanted: Callable[[str, str], bool]) -> list[str]:
    paths = recorded_experiments()
    return [path.stem for path in paths if any(itertools.starmap(wanted, labels(committed.record_of(path))))]


def words_in(label: str) -> set[str]:
    """The words of a label outside quotes, since the value of a setting may be called like a scheme."""
    return set(re.findall(r"\w+", re.sub(r"'[^']*'", "", label)))
