"""Engines that run the workers of a sweep: processes of this machine, SLURM, or Ray."""

from __future__ import annotations

import importlib.util
import math
import os
import re
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from posenc.lab.cli.output import clean, say
from posenc.lab.cli.watch import Watch
from posenc.lab.cli.work import Training
from posenc.lab.run import slurm, team
from posenc.lab.spec import modules
from posenc.lab.store import places
from posenc.language.echo import echoed, plural

AUTO, PATIENCE = "auto", 5.0
"""The address of the Ray cluster of this machine; seconds in which the head of another answers."""
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):(\d{1,5})")
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""The first bytes of a client of HTTP/2 and its empty settings, which a server answers by its own."""


class Engine(Protocol):
    """Engine that has workers train a planned run."""

    waits: ClassVar[bool]
    """True if `train` returns when the work is done, and not when it is queued."""

    def check(self) -> None:
        """Raise `ValueError` where this machine cannot do it, before anything is planned."""

    def preview(self, folder: Path, training: Training) -> str:
        """Say what would be started, for a dry run."""

    def train(self, folder: Path, training: Training) -> int:
        """Have workers train what is left of a run folder; returns the exit code."""


@dataclass(frozen=True)
class Team:
    """Processes of this machine, each with its own cores or GPU."""

    workers: int | None
    """It is None for one for each GPU, or for every two cores."""
    waits: ClassVar[bool] = True

    def places(self) -> list[team.Place]:
        """Return the cores and devices of the workers."""
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

    array: slurm.Slurm
    waits: ClassVar[bool] = False

    def check(self) -> None:
        slurm.check()

    def preview(self, folder: Path, training: Training) -> str:
        return slurm.script(self.array, folder, training.command(folder))

    def train(self, folder: Path, training: Training) -> int:
        job = slurm.submitted(self.array, folder, training.command(folder))
        say(f"Job {job}: {self.array.workers} of {folder / slurm.SCRIPT}; `posenc status {folder}` says how far it is.")
        return 0


@dataclass(frozen=True)
class RayEngine:
    """The nodes of a Ray cluster; this process is its driver, and writes the records."""

    address: str = AUTO
    """HOST:PORT of its head, or auto for the cluster that runs on this machine."""
    cpus: int = 1
    """Cores of a group, and its host devices where it trains on the CPU."""
    gpus: float = 0
    """GPUs of a group; a part of one, such as 0.5, shares it."""
    checkpoints: str | None = None
    """A folder or URL that outlives a node. Default: the run folder, where the nodes see it."""
    waits: ClassVar[bool] = True

    def __post_init__(self):
        if self.address != AUTO:
            host_and_port(self.address)
        if self.cpus < 1:
            raise ValueError(f"--ray.cpus is {self.cpus}; give a whole number from 1 up.")
        if not (0 <= self.gpus < math.inf) or (self.gpus > 1 and self.gpus % 1):
            raise ValueError(f"--ray.gpus is {self.gpus:g}; give a whole number from 0 up, or a part of 1 such as 0.5.")
        if self.checkpoints is not None:
            places.check(self.checkpoints)

    @property
    def head(self) -> str:
        """The address that Ray is given."""
        return os.environ.get("RAY_ADDRESS", AUTO) if self.address == AUTO else self.address

    def check(self) -> None:
        if importlib.util.find_spec("ray") is None:
            raise ValueError("--engine ray needs Ray, which is not installed: pip install 'posenc[ray]'.")
        from posenc.lab.run import ray

        if self.head != AUTO:
            check_answers(self.head)
        try:
            with ray.join(self.head):
                pass
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ValueError(refusal(self.head, str(error))) from error

    def preview(self, folder: Path, training: Training) -> str:
        needs = f"{plural(self.cpus, 'CPU')} and {self.gpus:g} GPUs"
        place = places.place_of(self.checkpoints, folder)
        return f"one task of Ray for each group, with {needs}; checkpoints below {place}"

    def train(self, folder: Path, training: Training) -> int:
        from posenc.lab.run import ray

        orders = {
            "keep": training.keep,
            "lanes": training.lanes,
            "every": training.save_every,
            "cpus": self.cpus,
            "gpus": self.gpus,
            "imports": modules.imported(),
            "place": places.place_of(self.checkpoints, folder),
        }
        return ray.run_on_cluster(folder, self.head, orders, Watch())


def host_and_port(address: str) -> tuple[str, int]:
    """Host and port of a Ray cluster's head. Raises `ValueError`."""
    match = _ADDRESS.fullmatch(address)
    if match is None or not 1 <= int(match[2]) <= 65535:
        raise ValueError(f"--ray.address is {echoed(address)}; give {AUTO} or HOST:PORT, as `ray start --head` prints.")
    return match[1].strip("[]"), int(match[2])


def refusal(address: str, message: str) -> str:
    """One sentence of what Ray says in many lines."""
    words = " ".join(message.split())
    if "ould not find any running" in words:
        return (
            "No Ray cluster runs on this machine; start one with `ray start --head`, or give --ray.address HOST:PORT."
        )
    where = f"Ray at {address} cannot be joined from {socket.gethostname()}"
    return f"{where}: {words[:300]}; run the driver on a node of the cluster, with the same Ray and Python."


def check_answers(address: str, patience: float = PATIENCE) -> None:
    """Raise `ValueError` where no head of Ray answers, after `patience` seconds; Ray itself waits for minutes."""
    try:
        with socket.create_connection(host_and_port(address), timeout=patience) as line:
            line.settimeout(patience)
            line.sendall(_HELLO)
            if line.recv(9)[3:4] == b"\4":  # a frame of settings
                return
        why = "answers, but is not the head of a Ray cluster"
    except TimeoutError:
        why = f"does not answer within {patience:g} s"
    except OSError as error:
        why = f"does not answer ({error.strerror or error})"
    raise ValueError(f"--ray.address {address} {why}; give the HOST:PORT that `ray start --head` printed.")


def _pinned(place: team.Place) -> str:
    variables = [f"{name}={value}" for name, value in place.environment.items()]
    return ", ".join([f"cores {','.join(map(str, place.cores))}", *variables])


def _tell(line: str) -> None:
    print(clean(line), file=sys.stderr, flush=True)
