"""What the pages are made of, read once: experiments, their records, and what became of their claims."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import posenc
from posenc.lab.cli import claims
from posenc.lab.results.ability_scores import words_in
from posenc.lab.results.evidence import Evidence
from posenc.lab.results.reproduction import Reproduction
from posenc.lab.results.results import Results, load
from posenc.lab.results.verdicts import findings
from posenc.lab.spec import committed
from posenc.lab.spec.experiment import Experiment
from posenc.lab.spec.experiment_file import from_file

PACKAGED = Path(posenc.__file__).resolve().parent / "docs"
"""Where a wheel has the guides; a checkout has them beside the package."""


@dataclass(frozen=True)
class Shelved:
    """One experiment with its committed results, and what its claims come to."""

    experiment: Experiment
    path: Path
    results: Results | None
    verdicts: tuple[Reproduction, ...]
    answer: str

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        return self.experiment.name

    @property
    def figure(self) -> Path | None:
        """Its committed figure."""
        path = self.path.parent / "figures" / f"{self.name}.svg"
        return path if path.is_file() else None

    @cached_property
    def tasks(self) -> set[str]:
        """The tasks of its runs, without settings."""
        return {run.task.partition("(")[0] for run in self.experiment.runs}

    @cached_property
    def recorded_tasks(self) -> set[str]:
        """The tasks of its record, without settings."""
        return {r.task.label.partition("(")[0] for r in (self.results.records if self.results else ())}

    @cached_property
    def recorded_schemes(self) -> set[str]:
        """The words of the labels of its record, schemes among them."""
        return set[str]().union(*(words_in(r.label) for r in (self.results.records if self.results else ())))


def shelve() -> tuple[Shelved, ...]:
    """Every experiment that comes with posenc, in the order of their names."""
    paths = sorted(experiments().glob("*.py"), key=lambda path: path.stem)
    return tuple(_shelved(path) for path in paths if path.name[0] != "_")


def experiments() -> Path:
    """The folder of experiments that comes with posenc. Raises `ValueError` where the installation has none."""
    return _shipped(committed.PACKAGED, "experiments")


def guides() -> Path:
    """The folder of the guides that come with posenc. Raises `ValueError` where the installation has none."""
    return _shipped(PACKAGED, "guides")


def _shipped(packaged: Path, what: str) -> Path:
    """A folder where a wheel has it, or beside the package, where a checkout does."""
    folder = next((p for p in (packaged, packaged.parent.parent / packaged.name) if p.is_dir()), None)
    if folder is None:
        raise ValueError(f"No {what} were found in {str(packaged)!r}; reinstall posenc.")
    return folder


def figures() -> Iterator[Path]:
    """The committed figures."""
    return iter(sorted((experiments() / "figures").glob("*.svg")))


def _shelved(path: Path) -> Shelved:
    experiment = from_file(path, yes=True)
    record, results, evidence = committed.record_of(path), None, None
    if record.is_file():
        with contextlib.suppress(ValueError):  # a damaged record is as none: `posenc reproduce` says what is wrong
            results = load(record)
            evidence = Evidence(results)
    reproductions = findings(experiment.published, evidence, experiment.header.attempted)
    words = claims.tally(reproductions) if reproductions and evidence else ""
    return Shelved(experiment, path, results, reproductions, words)
