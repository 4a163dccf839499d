"""The run folder: what was planned, what is finished, who works, what went wrong. No jax, no database, no counters.

    runs/<name>/{sweep.toml, plan.jsonl, records/, claims/, ckpt/, params/, errors/, events/<worker>.jsonl}

No path in it is absolute, so it may be moved or copied. The outcome of a trial is never stored twice: `status` reads
it off the records, the claims and the errors.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from posenc.lab.store import disk
from posenc.lab.store.claims import Held as Held
from posenc.lab.store.claims import claim as claim
from posenc.lab.store.claims import held as held
from posenc.lab.store.disk import DiskError as DiskError
from posenc.lab.store.disk import check_name as check_name
from posenc.lab.store.disk import create as create
from posenc.lab.store.disk import find as find
from posenc.lab.store.disk import ready as ready
from posenc.lab.store.disk import root as root
from posenc.lab.store.possible import planned
from posenc.lab.store.reading import Recorded as Recorded
from posenc.lab.store.reading import check_version
from posenc.lab.store.reading import read_records as read_records
from posenc.lab.store.reading import survey as survey
from posenc.lab.store.records import SCHEMA as SCHEMA
from posenc.lab.store.records import Stored as Stored
from posenc.lab.store.records import canonical as canonical
from posenc.lab.store.records import digest as digest
from posenc.lab.store.records import plain as plain
from posenc.lab.store.records import write_bundle
from posenc.lab.store.records import write_record as write_record
from posenc.lab.store.running import Running as Running
from posenc.lab.store.running import running
from posenc.lab.store.schema import PlannedTrial, UnfinishedTrial, written
from posenc.language.echo import counted

OUTCOMES = ("done", "diverged", "failed", "oom", "running", "stale", "pending")
FAILURES = ("failed", "oom")
RESULTS = ("done", "diverged")
"""Outcomes of trials that need no more work."""
_PLANNING = "planning"
_APPENDING = os.O_CREAT | os.O_APPEND | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


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
    """Who holds the group and when it last showed that it lives, or empty."""
    running: Running | None
    """How far the worker is that holds the group."""

    @property
    def finished(self) -> bool:
        """Whether every trial has a result."""
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


def write_plan(folder: Path, lines: Sequence[PlannedTrial], experiment: str = "") -> list[PlannedTrial]:
    """Append the trials that are not planned yet, and return them. A line once written never changes.

    The text of the experiment that adds them is kept too: the first as sweep.toml, then sweep-2.toml, sweep-3.toml, …
    """
    lines = [_line(_text(line), f"line {number} of the new plan") for number, line in enumerate(lines, 1)]
    check_version(folder)
    with _planning(folder):
        old = read_plan(folder) if disk.inside(folder, "plan.jsonl").exists() else []
        known, groups = {line.id: line for line in old}, {line.group for line in old}
        added = []
        for line in lines:
            if line.id in known:
                _same(line, known[line.id])
            elif line.group in groups:
                raise ValueError(f"The group {line.group!r} is fixed; new trials form new groups.")
            else:
                added.append(line)
                known[line.id] = line
        if added or not old:
            _keep_experiment(folder, experiment.encode())
            disk.write(disk.inside(folder, "plan.jsonl"), "".join(_text(line) + "\n" for line in old + added).encode())
    return added


def _keep_experiment(folder: Path, text: bytes) -> None:
    names = ("sweep.toml", *(f"sweep-{n}.toml" for n in range(2, 10**6)))
    path = next(p for name in names if not (p := disk.inside(folder, name)).exists() or disk.content(p) == text)
    if text and not path.exists():
        disk.write(path, text)


def read_plan(folder: Path) -> list[PlannedTrial]:
    """The planned trials, in the order in which they were planned."""
    path = disk.inside(folder, "plan.jsonl")
    if not path.exists():
        raise ValueError(f"{str(folder)!r} holds no plan.jsonl, so it is not a run folder; `posenc sweep` makes one.")
    texts = disk.content(path).decode("utf-8", errors="replace").splitlines()
    lines = [_line(text, f"line {number} of {str(path)!r}") for number, text in enumerate(texts, 1)]
    first: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if (before := first.setdefault(line.id, number)) != number:
            again = f"Line {number} of {str(path)!r} plans the trial {line.id[:12]} again"
            raise ValueError(f"{again}, as line {before} does; remove one of them.")
    return lines


def _line(text: str, where: str) -> PlannedTrial:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{where} is not JSON; restore the file, or plan again in a new folder.") from None
    return planned(PlannedTrial, content, where, "restore the file, or plan again")


def _text(line: PlannedTrial) -> str:
    return canonical(written(line))


def write_error(folder: Path, group: str, outcome: str, text: str) -> Path:
    """Keep why a group has no record: its outcome in the first line, then the traceback, without private paths."""
    if outcome not in FAILURES:
        raise ValueError(
            f"{outcome!r} cannot be stored as a failure; the outcome must be one of {', '.join(FAILURES)}."
        )
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
    found = [path for path in disk.part(folder, "errors") if path.suffix == ".txt"]
    return {path.stem: path for path in found if path.is_file() and not path.is_symlink()}


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


def status(folder: Path) -> RunStatus:
    """The outcome of every planned trial, read off what is stored."""
    plan, stored, errors = read_plan(folder), survey(folder), read_errors(folder)
    claims = {h.group: h for h in held(folder) if h.group != _PLANNING}
    working, finished = running(folder, claims.values()), stored.outcomes
    outcomes = {line.id: finished.get(line.id) or _waiting(line.group, claims, errors) for line in plan}
    groups: dict[str, list[PlannedTrial]] = {}
    for line in plan:
        groups.setdefault(line.group, []).append(line)
    rows = []
    for group, lines in groups.items():
        each = Counter(outcomes[line.id] for line in lines)
        error = errors.get(group, ("", ""))[1].strip().splitlines()[-1:]
        who = claims.get(group)
        worker = f"{who.host}:{who.pid}, beat {who.age:.0f} s ago" if who else ""
        counts = {o: each[o] for o in OUTCOMES if each[o]}
        first = lines[0]
        about = working.get(group)
        rows.append(GroupStatus(group, first.task, first.label, len(lines), counts, "".join(error), worker, about))
    total, problems = Counter(outcomes.values()), stored.problems
    if beside := finished.keys() - outcomes.keys():
        problems += (f"The plan lacks {counted(len(beside), 'recorded trial')}; restore plan.jsonl.",)
    return RunStatus({o: total[o] for o in OUTCOMES}, tuple(rows), outcomes, problems, stored.compiling)


def unfinished(folder: Path, stored: Stored) -> list[UnfinishedTrial]:
    """The planned trials of which the records hold no result, by id, each with the outcome that is known of it."""
    finished, errors = {id for record in stored.records for id in record.ids}, read_errors(folder)
    claims = {h.group: h for h in held(folder)}
    plan = sorted((line for line in read_plan(folder) if line.id not in finished), key=lambda line: line.id)
    return [UnfinishedTrial(**vars(line), outcome=_waiting(line.group, claims, errors)) for line in plan]


def bundle(folder: Path, path: Path, name: str | None = None) -> Path:
    """Put all results of a run folder into one small file to commit; trials without a result are listed in it."""
    named = name or Path(folder).resolve().name
    stored = read_records(folder)
    return write_bundle(Path(path), named, stored.records, unfinished(folder, stored))


def _waiting(group: str, claims: dict[str, Held], errors: dict[str, tuple[str, str]]) -> str:
    if group in claims:
        return "stale" if claims[group].stale else "running"
    return errors[group][0] if group in errors else "pending"


@contextlib.contextmanager
def _planning(folder: Path, patience: float = 10.0):
    """Only one process plans at a time; the others wait a little."""
    end = time.monotonic() + patience
    while True:
        with claim(folder, _PLANNING) as held_claim:
            if held_claim is not None:
                yield
                return
        if time.monotonic() > end:
            raise ValueError(f"Another process plans in {str(folder)!r}; wait a minute and run again.")
        time.sleep(0.05)


def _same(new: PlannedTrial, old: PlannedTrial) -> None:
    """A trial keeps its line: other sizes, rows or segments are another question, which needs another folder."""
    pairs = [("sizes", [*old.sizes], [*new.sizes]), ("rows", old.rows, new.rows)]
    if None not in (old.segment, new.segment):  # older plans hold none
        pairs.append(("segment", old.segment, new.segment))
    for key, before, now in pairs:
        if before != now:
            raise ValueError(
                f"Trial {new.id[:12]} ({new.label} on {new.task}) is planned here with {key} {before}, not {now}; "
                "use a new --name."
            )


def _relative(text: str) -> str:
    """A traceback whose files are named from their package on."""
    return re.sub(r'File "([^"]+)"', lambda m: f'File "{_tail(m[1])}"', text.strip())


def _tail(path: str) -> str:
    parts = path.replace("\\", "/").split("/")
    for mark, skip in (("site-packages", 1), ("posenc", 0)):
        if mark in parts[:-1]:
            return "/".join(parts[parts.index(mark) + skip :])
    return parts[-1]
