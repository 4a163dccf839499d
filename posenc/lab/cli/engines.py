"""Who runs the workers of a sweep: processes of this machine, or SLURM."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from posenc.lab.cli.output import clean, say
from posenc.lab.sweep import slurm, team


class Engine(Protocol):
    """What has workers train a planned run."""

    waits: ClassVar[bool]
    """Whether `train` returns when the work is done, and not when it is queued."""

    def check(self) -> None:
        """Raise `ValueError` where this machine cannot do it, before anything is planned."""

    def preview(self, folder: Path, command: Sequence[str]) -> str:
        """What would be started, for a dry run."""

    def train(self, folder: Path, command: Sequence[str]) -> int:
        """Have workers run this command on a run folder; returns the exit code."""


@dataclass(frozen=True)
class Team:
    """Processes of this machine, each with its own cores or GPU."""

    workers: int | None
    """None for one for each GPU, or for every two cores."""
    waits: ClassVar[bool] = True

    def places(self) -> list[team.Place]:
        """Where they would run."""
        return team.places(self.workers, team.cores(), team.gpus())

    def check(self) -> None:
        """Every machine can start processes."""

    def preview(self, folder: Path, command: Sequence[str]) -> str:
        return "\n".join(f"worker {n}: {_pinned(place)}" for n, place in enumerate(self.places(), 1))

    def train(self, folder: Path, command: Sequence[str]) -> int:
        where = self.places()
        many = f"{len(where)} worker{'s' * (len(where) != 1)}"
        _tell(f"{many}; `posenc status {folder}` says how far they are.")
        return team.together(command, where, folder, _tell)


@dataclass(frozen=True)
class SlurmEngine:
    """An array of SLURM's, submitted and left to it."""

    how: slurm.Slurm
    waits: ClassVar[bool] = False

    def check(self) -> None:
        slurm.check()

    def preview(self, folder: Path, command: Sequence[str]) -> str:
        return slurm.script(self.how, folder, command)

    def train(self, folder: Path, command: Sequence[str]) -> int:
        job = slurm.submitted(self.how, folder, command)
        say(f"Job {job}: {self.how.workers} of {folder / slurm.SCRIPT}; `posenc status {folder}` says how far it is.")
        return 0


def _pinned(place: team.Place) -> str:
    variables = [f"{name}={value}" for name, value in place.environment.items()]
    return ", ".join([f"cores {','.join(map(str, place.cores))}", *variables])


def _tell(line: str) -> None:
    print(clean(line), file=sys.stderr, flush=True)
