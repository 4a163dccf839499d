"""The experiments that come with posenc: where their files, records and figures lie. No jax."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection
from pathlib import Path

import posenc
from posenc.lab.store import disk
from posenc.lab.store.records import labels

PACKAGED = Path(posenc.__file__).resolve().parent / "experiments"
"""The folder of experiments in a wheel; a checkout has it beside the package."""


def folders() -> list[Path]:
    """Folders of experiment files, the first found first: inside the package, beside it, and in the current folder."""
    existing: list[Path] = []
    for place in (PACKAGED, PACKAGED.parent.parent / "experiments", Path("experiments")):
        if place.is_dir() and not any(place.samefile(other) for other in existing):
            existing.append(place)
    return existing


def files() -> dict[str, Path]:
    """Every experiment by name; a file of the current folder stands before one of the same name that is shipped.

    Raises `ValueError` where no folder has any: the installation is broken.
    """
    places = [path for folder in folders() for path in sorted(folder.glob("*.py"))]
    paths = {p.stem: p for p in places if p.name[0] != "_" and p.is_file()}  # a pipe, which may never end, is not read
    if not paths:
        raise ValueError(
            f"No experiment was found in {str(PACKAGED)!r} or in the folder 'experiments' here; reinstall posenc, or"
            " run the command in a checkout."
        )
    return paths


def find(text: str) -> Path | None:
    """The experiment file that a text names: a path that ends in .py, or the name of a shipped experiment."""
    return Path(text) if text.endswith(".py") else files().get(text)


def experiment_of(text: str) -> Path | None:
    """The experiment file that a text names. A run or bundle of that name comes before a shipped experiment."""
    if not text.endswith(".py") and (Path(text).exists() or (disk.root() / text).exists()):
        return None
    return find(text)


def existing_record(path: Path, text: str) -> Path:
    """The record of an experiment file that a text named. Raises `ValueError` where either is missing."""
    if not path.is_file():
        raise ValueError(f"There is no experiment file at {text!r}; `posenc list experiments` names those here.")
    if not (record := record_of(path)).is_file():
        raise ValueError(f"{text!r} has no record at {str(record)!r} yet; `posenc sweep {text}` trains it.")
    return record


def record_of(path: Path) -> Path:
    """Return the path of the committed record of an experiment file; a large one is compressed."""
    record = path.parent / "records" / f"{path.stem}.json"
    packed = record.with_name(f"{record.name}.gz")
    return packed if packed.is_file() else record


def figures_of(path: Path) -> Path:
    """Return the default folder of an experiment's figures: beside its file in a checkout, else `figures` here."""
    return Path("figures") if path.parent == PACKAGED else path.parent / "figures"


def recorded_experiments() -> list[Path]:
    """The experiment files that have a committed record, in the order of their names."""
    return sorted((p for p in files().values() if record_of(p).is_file()), key=lambda p: p.stem)


def experiments_with_task(name: str) -> list[str]:
    """The experiments whose record has runs on a task, with any settings."""
    return _experiments(lambda scheme, task: task.partition("(")[0] == name)


def experiments_with_schemes(names: Collection[str]) -> list[str]:
    """Return the experiments whose record has runs of a scheme, alone or in a sum, with any settings. With several
    names they must be together in a run."""
    return _experiments(lambda scheme, task: set(names) <= words_in(scheme))


def _experiments(wanted: Callable[[str, str], bool]) -> list[str]:
    paths = recorded_experiments()
    return [path.stem for path in paths if any(itertools.starmap(wanted, labels(record_of(path))))]


def words_in(label: str) -> set[str]:
    """The words of a label outside quotes, since the value of a setting may be called like a scheme."""
    return set(re.findall(r"\w+", re.sub(r"'[^']*'", "", label)))
