"""Who runs the workers of a sweep: processes of this machine, SLURM, or Ray."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from posenc.lab.cli import modules
from posenc.lab.cli.output import clean, say
from posenc.lab.cli.watch import Elsewhere
from posenc.lab.cli.work import Training
from posenc.lab.store import places
from posenc.lab.sweep import slurm, team
from posenc.lab.sweep.ray.settings import Ray
from posenc.language.echo import plural


class Engine(Protocol):
    """What has workers train a planned run."""

    waits: ClassVar[bool]
    """Whether `train` returns when the work is done, and not when it is queued."""

    def check(self) -> None:
        """Raise `ValueError` where this machine cannot do it, before anything is planned."""

    def preview(self, folder: Path, training: Training) -> str:
        """What would be started, for a dry run."""

    def train(self, folder: Path, training: Training) -> int:
        """Have workers train what is left of a run folder; returns the exit code."""


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

    def preview(self, folder: Path, training: Training) -> str:
        return "\n".join(f"worker {n}: {_pinned(place)}" for n, place in enumerate(self.places(), 1))

    def train(self, folder: Path, training: Training) -> int:
        where = self.places()
        many = f"{len(where)} worker{'s' * (len(where) != 1)}"
        _tell(f"{many}; `posenc status {folder}` says how far they are.")
        return team.together(training.command(folder), where, folder, _tell)


@dataclass(frozen=True)
class SlurmEngine:
    """An array of SLURM's, submitted and left to it."""

    asked: slurm.Slurm
    waits: ClassVar[bool] = False

    def check(self) -> None:
        slurm.check()

    def preview(self, folder: Path, training: Training) -> str:
        return slurm.script(self.asked, folder, training.command(folder))

    def train(self, folder: Path, training: Training) -> int:
        job = slurm.submitted(self.asked, folder, training.command(folder))
        say(f"Job {job}: {self.asked.workers} of {folder / slurm.SCRIPT}; `posenc status {folder}` says how far it is.")
        return 0


@dataclass(frozen=True)
class RayEngine:
    """The nodes of a Ray cluster; this process is its driver, and writes the records."""

    asked: Ray
    waits: ClassVar[bool] = True

    def check(self) -> None:
        from posenc.lab.sweep.ray.cluster import check

        check(self.asked)

    def preview(self, folder: Path, training: Training) -> str:
        of = f"{plural(self.asked.cpus, 'CPU')} and {self.asked.gpus:g} GPUs"
        where = places.place_of(self.asked.checkpoints, folder)
        return f"one task of Ray for each group, with {of}; checkpoints below {where}"

    def train(self, folder: Path, training: Training) -> int:
        from posenc.lab.sweep.ray.sweep import on_cluster

        options = {"keep": training.keep, "lanes": training.lanes, "save_every": training.every}
        return on_cluster(folder, self.asked, **options, imports=modules.imported(), watch=Elsewhere())


def _pinned(place: team.Place) -> str:
    variables = [f"{name}={value}" for name, value in place.environment.items()]
    return ", ".join([f"cores {','.join(map(str, place.cores))}", *variables])


def _tell(line: str) -> None:
    print(clean(line), file=sys.stderr, flush=True)
