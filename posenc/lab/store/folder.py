"""The run folder: planned trials, results, workers, errors. No jax, no database, no counters.

    runs/<name>/{sweep.toml, plan.jsonl, records/<worker>.jsonl, events/<worker>.jsonl,
                 claims/, ckpt/, params/, errors/}

No path in it is absolute, so it may be moved or copied. The outcome of a trial is never stored twice: `status` reads it
off the records, the claims and the errors. Checkpoints and the ends of event files show how far groups in training are:
every worker adds a line to its own every few seconds. Only the last bytes of each are read, so that a look costs the
same however long the workers have run. Nothing is decided by what the lines say.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from posenc.lab.store import disk
from posenc.lab.store.claims import Held, claim, clock, held
from posenc.lab.store.disk import DiskError, check_name, create, find, ready, root
from posenc.lab.store.logs import Recorded, read_records, survey, write_record
from posenc.lab.store.plans import PLANNING, by_run, read_plan, reported, run_key, write_plan
from posenc.lab.store.records import SCHEMA, Stored, canonical, checksum, digest, plain, write_bundle
from posenc.lab.store.schema import STEPS, PlannedTrial, Size, UnfinishedTrial
from posenc.language.echo import plural

OUTCOMES = ("done", "diverged", "failed", "oom", "running", "stale", "pending")
FAILURES = ("failed", "oom")
RESULTS = ("done", "diverged")
"""Outcomes of trials that need no more work."""
_APPENDING = os.O_CREAT | os.O_APPEND | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
STEP = "step"
"""The event of a group that trains."""
TAIL = 4096
"""Bytes that are read of an event file, for each group that its worker holds."""


@dataclass(frozen=True)
class Running:
    """A group that a worker holds, and how far it was when the worker last said so."""

    host: str
    pid: int | None
    job: str | None
    """The job of a batch system."""
    beat: float
    """Seconds since its worker showed that it lives."""
    step: int | None = None
    """It is None while the group compiles."""
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
    """The loss of the last step, the mean over its trials."""


@dataclass(frozen=True)
class GroupStatus:
    """How far the trials of one program are."""

    group: str
    task: str
    scheme: str
    trials: int
    counts: dict[str, int]
    """Outcome to number of trials, of those that occur."""
    error: str
    """The last line of the traceback, or empty."""
    worker: str
    """The worker that holds the group, and when it last showed that it lives; or empty."""
    running: Running | None
    """How far the worker is that holds the group."""
    tuning: bool = False
    """True if its trials choose a learning rate and are not reported."""
    saved: int | None = None
    """The step of the checkpoint from which an unclaimed group goes on."""

    @property
    def finished(self) -> bool:
        """Tell whether every trial has a result."""
        return sum(self.counts.get(outcome, 0) for outcome in RESULTS) == self.trials


@dataclass(frozen=True)
class RunStatus:
    """How far a run is: trials per outcome, one row per group, and a sentence for each file that is wrong."""

    counts: dict[str, int]
    rows: tuple[GroupStatus, ...]
    outcomes: dict[str, str]
    problems: tuple[str, ...]
    compiling: float
    """Seconds that compiling took, of all groups recorded here; older records do not say."""

    @property
    def left(self) -> set[str]:
        """The trials without a result."""
        return {id for id, outcome in self.outcomes.items() if outcome not in RESULTS}


def write_error(folder: Path, group: str, outcome: str, text: str) -> Path:
    """Keep why a group has no record: its outcome in the first line, then the traceback, without private paths."""
    if outcome not in FAILURES:
        raise ValueError(f"{outcome!r} cannot be stored as a failure; it must be one of {', '.join(FAILURES)}.")
    return disk.write(disk.inside(folder, "errors", f"{group}.txt"), f"{outcome}\n{_relative(text)}\n".encode())


def read_errors(folder: Path) -> dict[str, tuple[str, str]]:
    """Group to outcome and text."""
    errors = {}
    for group, path in error_files(folder).items():
        outcome, _, text = disk.content(path).decode("utf-8", errors="replace").partition("\n")
        errors[group] = (outcome if outcome in FAILURES else "failed", text)
    return errors


def error_files(folder: Path) -> dict[str, Path]:
    """Group to the file that says why it has no record."""
    paths = [path for path in disk.part(folder, "errors") if path.suffix == ".txt"]
    return {path.stem: path for path in paths if path.is_file() and not path.is_symlink()}


def clear_error(folder: Path, group: str) -> None:
    """Forget a failure, when its group is tried again."""
    disk.inside(folder, "errors", f"{group}.txt").unlink(missing_ok=True)


def log(folder: Path, worker: str, event: str, **details: object) -> None:
    """Append one line to a worker's own log. Nothing is ever decided by what it says."""
    path = disk.inside(folder, "events", f"{worker}.jsonl")
    line = canonical({"time": round(time.time(), 3), "event": event, **details}) + "\n"
    with disk.guarded(path):
        descriptor = os.open(path, _APPENDING, 0o644)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)


def status(folder: Path, plan: Sequence[PlannedTrial] | None = None) -> RunStatus:
    """The outcome of every planned trial, read off what is stored; of a `plan` that was read already, of that."""
    plan, stored, errors = plan or read_plan(folder), survey(folder), read_errors(folder)
    claims = {h.group: h for h in held(folder) if h.group != PLANNING}
    working, recorded = running(folder, claims.values()), stored.outcomes
    stopped = saved(folder, claims)
    outcomes = {line.id: recorded.get(line.id) or _waiting(line.group, claims, errors) for line in plan}
    groups: dict[str, list[PlannedTrial]] = {}
    for line in plan:
        groups.setdefault(line.group, []).append(line)
    rows = []
    for group, lines in groups.items():
        each = [outcomes[line.id] for line in lines]
        error = errors.get(group, ("", ""))[1].strip().splitlines()[-1:]
        who = claims.get(group)
        worker = f"{who.host}:{who.pid}, beat {who.age:.0f} s ago" if who else ""
        counts = {o: n for o in OUTCOMES if (n := each.count(o))}
        first = lines[0]
        progress = working.get(group)
        head = (group, first.task, first.label, len(lines))
        rows.append(GroupStatus(*head, counts, "".join(error), worker, progress, first.tuning, stopped.get(group)))
    total, problems = Counter(outcomes.values()), stored.problems
    if beside := recorded.keys() - outcomes.keys():
        problems += (f"The plan lacks {plural(len(beside), 'recorded trial')}; restore plan.jsonl.",)
    return RunStatus({o: total[o] for o in OUTCOMES}, tuple(rows), outcomes, problems, stored.compiling)


def finished(folder: Path) -> set[str]:
    """Return the groups whose trials are all recorded."""
    return {row.group for row in status(folder).rows if row.finished}


def unfinished(folder: Path, stored: Stored) -> list[UnfinishedTrial]:
    """Return the planned trials without a recorded result, by id, each with the outcome that is known of it."""
    recorded, errors = {id for record in stored.records for id in record.ids}, read_errors(folder)
    claims = {h.group: h for h in held(folder)}
    plan = sorted((line for line in read_plan(folder) if line.id not in recorded), key=lambda line: line.id)
    return [UnfinishedTrial(**vars(line), outcome=_waiting(line.group, claims, errors)) for line in plan]


def bundle(folder: Path, path: Path, name: str | None = None) -> Path:
    """Put all results of a run folder into one small file to commit; trials without a result are listed in it."""
    named = name or Path(folder).resolve().name
    stored = read_records(folder)
    return write_bundle(Path(path), named, stored.records, unfinished(folder, stored))


class Leftover(NamedTuple):
    """A file or folder to remove."""

    path: Path
    why: str
    size: int
    """Bytes."""


def leftovers(folder: Path) -> list[Leftover]:
    """Return what no longer serves, in the order of paths. It contains nothing that a living worker may need."""
    from posenc.lab.store import checkpoints  # and NumPy, which a status does not need

    claims = held(folder)
    alive = {c.group for c in claims if not c.stale}
    paths = {disk.inside(folder, "claims", c.group): "a claim whose worker is gone" for c in claims if c.stale}
    for group in finished(folder).intersection(checkpoints.groups(folder)) - alive:
        paths[disk.inside(folder, checkpoints.FOLDER, group)] = "checkpoints of a group that is recorded"
    homes = [disk.inside(folder, name) for name in (*disk.PARTS, checkpoints.FOLDER)]
    homes += [home for home in homes[-1].glob("*") if home.is_dir() and home.name not in alive]
    for home in (folder, *homes):
        paths |= dict.fromkeys(disk.abandoned(home), "half written, and left for more than an hour")
    return [Leftover(path, why, _size(path)) for path, why in sorted(paths.items())]


def remove(paths: list[Leftover]) -> None:
    """Remove them; one that has gone meanwhile is not an error."""
    for path, *_ in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _size(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.lstat().st_size for file in files if file.is_file())


def _waiting(group: str, claims: dict[str, Held], errors: dict[str, tuple[str, str]]) -> str:
    if group in claims:
        return "stale" if claims[group].stale else "running"
    return errors[group][0] if group in errors else "pending"


def _relative(text: str) -> str:
    """A traceback whose files are named from their package on."""
    return re.sub(r'File "([^"]+)"', lambda m: f'File "{_tail(m[1])}"', text.strip())


def _tail(path: str) -> str:
    parts = path.replace("\\", "/").split("/")
    for mark, skip in (("site-packages", 1), ("posenc", 0)):
        if mark in parts[:-1]:
            return "/".join(parts[parts.index(mark) + skip :])
    return parts[-1]


def running(folder: Path, claims: Iterable[Held]) -> dict[str, Running]:
    """How far the groups of these claims are. Ages are by the clock of the file system."""
    now, rows = clock(disk.inside(folder, "claims")), {}
    workers: dict[str, list[Held]] = {}
    for each in claims:
        workers.setdefault(worker(each.host, each.pid), []).append(each)
    for name, groups in workers.items():  # one of many groups drives a cluster
        reports = _reports(folder, name, TAIL * len(groups))
        rows |= {each.group: _running(folder, each, reports.get(each.group, {}), now) for each in groups}
    return rows


def _running(folder: Path, of: Held, report: dict[str, Any], now: float) -> Running:
    left = (report["steps"] - report["step"]) / report["rate"] if report.get("rate") else None
    saved, age = _saved(folder, of.group, now)
    return Running(of.host, of.pid, of.job, of.age, left=left, saved=saved, age=age, **report)


def saved(folder: Path, held: Collection[str]) -> dict[str, int]:
    """Return group to the step of its last checkpoint, for groups without a claim: training stopped there and goes
    on."""
    names = {path.name for path in disk.inside(folder, "ckpt").glob("*")}.difference(held)
    groups = filter(disk.NAME.fullmatch, names)  # nodes of a cluster leave signs there
    steps = {group: _saved(folder, group, 0.0)[0] for group in groups}
    return {group: step for group, step in steps.items() if step is not None}


def worker(host: str, pid: int | None) -> str:
    """The name of a worker, and of its file of events."""
    return f"{host}-{pid}"


class StepReport(msgspec.Struct, frozen=True, tag_field="event", tag=STEP):
    """Line in the log of a worker about a group that trains."""

    group: str
    step: Size
    steps: Size
    rate: Any = None
    """Steps a second."""
    loss: float | None = None


def _reports(folder: Path, name: str, size: int) -> dict[str, dict[str, Any]]:
    """Group to what a worker reported of it last, among the last bytes of its log."""
    reports: dict[str, dict[str, Any]] = {}
    with contextlib.suppress(ValueError, OSError):  # no events yet, or a host whose name cannot be that of a file
        for line in _last_lines(disk.inside(folder, "events", f"{name}.jsonl"), size):
            with contextlib.suppress(ValueError, RecursionError):
                report = msgspec.json.decode(line, type=StepReport)
                rate = report.rate if type(report.rate) in (int, float) and 0 < report.rate < STEPS else None
                if report.step <= report.steps:
                    progress = {"step": report.step, "steps": report.steps, "rate": rate, "loss": report.loss}
                    reports[report.group] = progress
    return reports


def _last_lines(path: Path, size: int) -> list[bytes]:
    """The last whole lines of a file."""
    with disk.opened(path) as file:
        start = max(0, os.fstat(file.fileno()).st_size - size)
        file.seek(start)
        return file.read(size).split(b"\n")[start > 0 : -1]


def _saved(folder: Path, group: str, now: float) -> tuple[int, float] | tuple[None, None]:
    """The step of the last checkpoint of a group, and its age."""
    from posenc.lab.store import checkpoints  # and NumPy, which a run that nobody works on does not need

    with contextlib.suppress(FileNotFoundError):  # its worker removes old ones
        if places := checkpoints.paths(folder, group):
            return checkpoints.step_of(places[-1]), max(0.0, now - places[-1].stat().st_mtime)
    return None, None
