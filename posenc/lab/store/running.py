"""How far the groups are that workers train now, read off claims, checkpoints and the ends of event files.

Every worker adds a line to its own file of events every few seconds. Only the last bytes of each are read, so a look
costs the same however long the workers have run. Nothing is decided by what the lines say.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from posenc.lab.store import disk
from posenc.lab.store.claims import Held, clock

STEP = "step"
"""The event of a group that trains."""
TAIL = 4096
"""Bytes that are read of an event file, for each group that its worker holds."""
_MOST = 2**31


class StepReport(NamedTuple):
    """What a worker says of a group every few seconds."""

    step: int | None = None
    steps: int | None = None
    rate: float | None = None
    """Steps a second."""
    loss: float | None = None
    """Of the last step, the mean over its trials."""


@dataclass(frozen=True)
class Running:
    """A group that a worker holds, and how far it was when the worker last said so."""

    host: str
    pid: int | None
    job: str | None
    """Of a batch system."""
    beat: float
    """Seconds since its worker showed that it lives."""
    step: int | None = None
    """None while it compiles."""
    steps: int | None = None
    rate: float | None = None
    """Steps a second."""
    left: float | None = None
    """Seconds of training that are left, evaluation not among them."""
    saved: int | None = None
    """The step of its last checkpoint."""
    age: float | None = None
    """Seconds since that was written."""
    loss: float | None = None


def running(folder: Path, claims: Iterable[Held]) -> dict[str, Running]:
    """How far the groups of these claims are. Ages are by the clock of the file system."""
    now, found = clock(disk.inside(folder, "claims")), {}
    workers: dict[str, list[Held]] = {}
    for claim in claims:
        workers.setdefault(worker(claim.host, claim.pid), []).append(claim)
    for name, held in workers.items():  # one of many groups drives a cluster
        reports = _reports(folder, name, TAIL * len(held))
        for claim in held:
            found[claim.group] = _running(folder, claim, reports.get(claim.group, StepReport()), now)
    return found


def _running(folder: Path, claim: Held, report: StepReport, now: float) -> Running:
    step, steps, rate, loss = report
    left = (steps - step) / rate if rate and step is not None and steps is not None else None
    saved, age = _saved(folder, claim.group, now)
    return Running(claim.host, claim.pid, claim.job, claim.age, step, steps, rate, left, saved, age, loss)


def saved(folder: Path, held: Collection[str]) -> dict[str, int]:
    """Group to the step of its last checkpoint, of those that nobody holds: training stopped there and goes on."""
    names = {path.name for path in disk.inside(folder, "ckpt").glob("*")}.difference(held)
    groups = filter(disk.NAME.fullmatch, names)  # nodes of a cluster leave signs there
    steps = {group: _saved(folder, group, 0.0)[0] for group in groups}
    return {group: step for group, step in steps.items() if step is not None}


def worker(host: str, pid: int | None) -> str:
    """The name of a worker, and of its file of events."""
    return f"{host}-{pid}"


def _reports(folder: Path, name: str, size: int) -> dict[str, StepReport]:
    """Group to what a worker reported of it last, among the last bytes of its log."""
    found: dict[str, StepReport] = {}
    with contextlib.suppress(ValueError, OSError):  # no events yet, or a host whose name cannot be that of a file
        for line in _tail(disk.inside(folder, "events", f"{name}.jsonl"), size):
            group, step, steps = (line.get(key) for key in ("group", "step", "steps"))
            if (
                line.get("event") == STEP
                and isinstance(group, str)
                and _whole(step)
                and _whole(steps)
                and step <= steps
            ):
                found[group] = StepReport(step, steps, _positive(line.get("rate")), _positive(line.get("loss")))
    return found


def _tail(path: Path, size: int) -> list[dict[str, Any]]:
    """The last whole lines of a file of events; one that is not an event is left out."""
    with disk.opened(path) as file:
        start = max(0, os.fstat(file.fileno()).st_size - size)
        file.seek(start)
        lines = file.read(size).split(b"\n")[start > 0 : -1]
    found = []
    for line in lines:
        with contextlib.suppress(ValueError, RecursionError):
            found.append(json.loads(line))
    return [line for line in found if isinstance(line, dict)]


def _saved(folder: Path, group: str, now: float) -> tuple[int, float] | tuple[None, None]:
    """The step of the last checkpoint of a group, and its age."""
    from posenc.lab.store import checkpoints  # and NumPy, which a run that nobody works on does not need

    with contextlib.suppress(FileNotFoundError):  # its worker removes old ones
        if places := checkpoints.paths(folder, group):
            return checkpoints.step_of(places[-1]), max(0.0, now - places[-1].stat().st_mtime)
    return None, None


def _positive(value: Any) -> float | None:
    """A number above 0, or None in the place of anything else."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _MOST else None


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST
