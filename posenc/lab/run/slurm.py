"""SLURM: a sweep as an array of workers, by a job script that its user can read and edit.

Each task of the array is a `posenc work`. It saves at the signal that comes before its time ends, exits with 75, and
asks to be queued again. A task that another job displaces does so too. A claim names its job, and `posenc status` reads
claims, so that no accounting database is needed.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from posenc.lab.run.signals import PREEMPTED
from posenc.lab.store import disk

SCRIPT = "slurm.sh"
NOTICE = 120
"""Seconds before the end of its time at which a worker hears of it; less where it has less than ten minutes."""
_NAMED = re.compile(r"[A-Za-z0-9_.,+-]+")


@dataclass(frozen=True)
class Slurm:
    """Request to SLURM for each worker."""

    workers: int = 1
    """How many workers: tasks of the array."""
    time: int | None = None
    """Minutes after which SLURM ends a worker; it goes on in the next place in the queue. Default: the partition's."""
    partition: str | None = None
    cpus: int | None = None
    gpus: int | None = None
    extra: str = ""
    """Further options of sbatch, such as "--account=lab --constraint=a100"."""

    def __post_init__(self):
        for name in ("workers", "time", "cpus", "gpus"):
            value, least = getattr(self, name), 0 if name == "gpus" else 1
            if value is not None and value < least:
                raise ValueError(f"--slurm.{name} is {value}; give a whole number from {least} up.")
        if self.partition is not None and not _NAMED.fullmatch(self.partition):
            raise ValueError(f"--slurm.partition is {self.partition!r}; give the name of a partition.")
        if wrong := [word for word in self.options if not word.startswith("-")]:
            raise ValueError(f"--slurm.extra has {wrong[0]!r}; write options of sbatch with =, such as --account=lab.")
        if "\n" in self.extra or not self.extra.isprintable():
            raise ValueError("--slurm.extra has a line break or an unprintable character; write it in one line.")

    @property
    def options(self) -> list[str]:
        """The words of `extra`."""
        try:
            return shlex.split(self.extra)
        except ValueError as error:
            raise ValueError(f"--slurm.extra is {self.extra!r}, which is not words: {error}.") from None

    @property
    def notice(self) -> int | None:
        """Seconds between the signal and the end; None where no time is set."""
        return None if self.time is None else min(NOTICE, self.time * 60 // 5)


def script(job: Slurm, folder: Path, command: Sequence[str]) -> str:
    """The job script that works on a run folder by this command."""
    log = str(folder.absolute()).replace("%", "%%") + "/slurm-%A_%a.log"
    if not log.isprintable() or '"' in log:
        raise ValueError(f"The folder {str(folder)!r} cannot stand in a job script; choose one without quotes in it.")
    requests = {
        "job-name": f"posenc-{folder.name}",
        "array": f"0-{job.workers - 1}",
        "partition": job.partition,
        "time": job.time,
        "cpus-per-task": job.cpus,
        "gpus": job.gpus or None,
        "signal": None if job.notice is None else f"TERM@{job.notice}",
        "output": f'"{log}"',
    }
    options = [f"--{name}={value}" for name, value in requests.items() if value is not None]
    options += ["--requeue", "--open-mode=append", *map(shlex.quote, job.options)]
    return "\n".join(
        [
            "#!/bin/bash",
            *(f"#SBATCH {option}" for option in options),
            "",
            "# The signal of SLURM reaches the worker too, which saves and exits; this shell only has to outlive it.",
            "trap : TERM INT HUP USR1 USR2",
            f"srun --ntasks=1 {shlex.join(command)}",
            "code=$?",
            'task="${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"',
            "# A worker that was told to stop goes on later, unless its job was cancelled, which then no longer runs.",
            f'if [ $code = {PREEMPTED} ] && [ "$(squeue -h -j "$task" -o %T)" = RUNNING ]; then',
            '  scontrol requeue "$task"',
            "  exit 0",
            "fi",
            "exit $code",
            "",
        ]
    )


def check() -> None:
    """Raise `ValueError` where jobs cannot be submitted."""
    if shutil.which("sbatch") is None:
        raise ValueError("SLURM is not here: there is no sbatch on the path; submit from a machine that has it.")


def submitted(job: Slurm, folder: Path, command: Sequence[str]) -> str:
    """Write the job script into the run folder and submit it; returns the job's id. Raises `ValueError`."""
    path = disk.inside(folder, SCRIPT)
    disk.write(path, script(job, folder, command).encode())
    done = subprocess.run(["sbatch", "--parsable", str(path)], capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"sbatch refused {str(path)!r}: {' '.join(done.stderr.split())}")
    return done.stdout.strip().partition(";")[0]
