"""The records of a run folder: append-only logs of sealed lines, one for each group, each file with one writer.

    records/<host>-<pid>-<token>.jsonl
    {"schema":3,"sha256":"…","name":"…","run":{…},…,"trials":[…],…}

The SHA-256 is that of the bytes which follow it, up to the end of the line. The name shows which group a damaged line
was of. Lines of schemas 1 and 2, as version 0.2.0 wrote them, have more in front of the record; they are read.

A trial is done iff a readable record holds it. Every line that cannot be used is named, and reading goes on without it.
It costs one group, which the next run of the same command computes again. Once that is recorded, the damaged line is
named no more. A process makes a file of its own when it writes its first record. So a line which a kill cut short is
the last of its file and is never joined to another.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import secrets
import socket
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from posenc.lab.store import disk
from posenc.lab.store.records import Stored, content_of, differing, digest, once, parsed, reason, record_of
from posenc.lab.store.schema import OLDER, GroupRecord

SCHEMA = 3
"""Schema of a line."""
SUFFIX = ".jsonl"
UNUSABLE = (ValueError, TypeError, RecursionError, OSError)
"""Errors that reading a damaged file raises."""
SHOWN = 6
"""Damaged lines that a message names."""
CUT = "it has no end, so it is being written, or was cut short by a kill"
DAMAGED = "its checksum does not match its content, so it was damaged or edited"
_START = re.compile(rb'\{"schema":[123],"sha256":"([0-9a-f]{64})",')
"""The beginning of a line; the checksum seals what follows it."""
_NAME = re.compile(rb'"name":"([0-9a-f]{32})",')
_FLAGS = os.O_APPEND | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class TrialBrief(msgspec.Struct, frozen=True):
    """The part of a trial that is looked for."""

    id: str
    outcome: Literal["done", "diverged"]


class CompileBrief(msgspec.Struct, frozen=True):
    """The part of a record about compiling."""

    seconds: Annotated[float, msgspec.Meta(ge=0)] | None = None


class Provenance(msgspec.Struct, frozen=True):
    """The part of a record's provenance that is looked for."""

    compiled: CompileBrief | None = None


class Brief(msgspec.Struct, frozen=True):
    """The part of a record that `status` and workers look for; they decode nothing else of it."""

    trials: tuple[TrialBrief, ...]
    provenance: Provenance


class Entry(NamedTuple):
    """A line of a log that can be used."""

    path: Path
    number: int
    """From 1."""
    start: int
    """Its beginning, in bytes."""
    sum: bytes
    name: str
    """The digest of its trials, which is the name of their group where all were finished together."""
    trials: tuple[TrialBrief, ...]
    compiled: float
    """Seconds that compiling took; 0 for a record that does not say."""
    record: GroupRecord | None
    """Its content, where that was read."""

    @property
    def where(self) -> str:
        """Its place, as messages call it."""
        return f"line {self.number} of records/{self.path.name}"

    def content(self) -> GroupRecord:
        """Its content, read again where it was not kept."""
        if self.record is not None:
            return self.record
        with disk.opened(self.path, math.inf) as file:
            file.seek(self.start)
            return record_of(parsed(unseal(file.readline())[0]))


class Damage(NamedTuple):
    """A line of a log that cannot be used, or a file without a usable line."""

    path: Path
    number: int
    """From 1; 0 for a whole file."""
    why: str
    """The end of a sentence."""
    name: str = ""
    """That of its record, where that can still be read."""
    cut: bool = False
    """True if it is the last line and has no end."""


class Survey(NamedTuple):
    """Content of the records, without the losses and counts."""

    outcomes: dict[str, str]
    """Trial to "done" or "diverged"."""
    problems: tuple[str, ...]
    compiling: float
    """Seconds that compiling took."""


def write_record(folder: Path, record: GroupRecord) -> Path:
    """Store the trials that one program run finished: a line of this process's own log, which is returned."""
    return _WRITER.append(disk.inside(folder, "records"), sealed(record))


def sealed(record: GroupRecord) -> bytes:
    """The line of a record, without its end. Raises `ValueError` for what could not be read back."""
    content = json.dumps(content_of(record), separators=(",", ":"), allow_nan=False).encode()
    return seal(digest(record.ids), content)


def seal(name: str, content: bytes) -> bytes:
    """A line that holds this JSON."""
    body = b'"name":"%s",%s' % (name.encode(), content.removeprefix(b"{"))
    return b'{"schema":%d,"sha256":"%s",%s' % (SCHEMA, hashlib.sha256(body).hexdigest().encode(), body)


def unseal(line: bytes) -> tuple[bytes, bytes]:
    """The JSON of a line, and its checksum. Raises `ValueError`."""
    line = line.removesuffix(b"\n")
    start = _START.match(line)
    if not start and (newer := _version(line)) > SCHEMA:
        raise ValueError(f"it has schema {newer}, this posenc reads up to {SCHEMA}; install the newer one")
    if not start:
        raise ValueError("it is empty, cut short or not a line of a log")
    if line.startswith(b'"run":', start.end()):
        raise ValueError(f"it is of a file of one record, or of a pack, {OLDER}")
    if hashlib.sha256(memoryview(line)[start.end() :]).hexdigest().encode() != start[1]:
        raise ValueError(DAMAGED)
    content = b"{" + line[start.end() :]
    if line.startswith(b'{"schema":1,'):  # the record has a key of its own there
        content = content.partition(b',"record":')[2][:-1]
    return content, start[1]


def survey(folder: Path) -> Survey:
    """The outcome of every recorded trial, and a sentence for each file or line that is wrong."""
    entries, problems, _ = _entries(folder, contents=False)
    first: dict[str, tuple[Entry, str]] = {}
    for entry in entries:
        for trial in entry.trials:
            before, _ = first.setdefault(trial.id, (entry, trial.outcome))
            if before is not entry:
                problems.append(differing(trial.id, *((e.where, e.content()) for e in (before, entry))))
    outcomes = {id: outcome for id, (_, outcome) in first.items()}
    return Survey(outcomes, tuple(problems), sum(entry.compiled for entry in entries))


def read_records(folder: Path) -> Stored:
    """All records of a run folder, by name; of a trial that two of them hold the first is taken."""
    entries, problems, lost = _entries(folder, contents=True)
    return once([(entry.where, entry.content()) for entry in entries], problems, lost)


def check_version(folder: Path) -> None:
    """Refuse a folder with records of a newer posenc, before anything is computed that could not be stored there."""
    for path in disk.part(folder, "records"):
        if path.is_file():
            with disk.opened(path, math.inf) as file:  # a log is of one version, as it has one writer
                newer = _version(file.readline())
            if newer > SCHEMA:
                raise ValueError(
                    f"records/{path.name} has schema {newer}, this posenc writes {SCHEMA}; install the newer one."
                )


class Recorded:
    """Trials that are recorded in a run folder. Each log is read on from where it ended before."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._ids: set[str] = set()
        self._ends: dict[str, tuple[int, int]] = {}
        """File to the bytes and the lines that were read."""

    def ids(self) -> set[str]:
        """The trials that have a record."""
        place = disk.inside(self._folder, "records")
        for name in os.listdir(place) if place.is_dir() else ():
            start, number = self._ends.get(name, (0, 0))
            with contextlib.suppress(*UNUSABLE):  # `survey` names it
                if name.endswith(SUFFIX) and not name.startswith(".") and os.stat(place / name).st_size > start:
                    self._read_log(place / name, start, number)
        return self._ids

    def _read_log(self, path: Path, start: int, number: int) -> None:
        for line, end in read_log(path, False, start, number + 1):
            if isinstance(line, Entry):
                self._ids.update(trial.id for trial in line.trials)
            elif line.cut:
                return  # its end may come
            self._ends[path.name] = end, line.number


def read_log(path: Path, contents: bool, start: int = 0, number: int = 1) -> Iterator[tuple[Entry | Damage, int]]:
    """The lines of a log from a place on, each with the place where it ends; with their `contents`, or in brief.

    Raises `FileNotFoundError`, `DiskError`, and `ValueError` for what is not a plain file.
    """
    if path.is_symlink():
        raise ValueError("it is a link, and a run folder holds plain files only")
    with disk.opened(path, math.inf) as file:
        file.seek(start)
        for number, line in enumerate(file, number):  # noqa: B020
            try:
                yield _entry(path, number, start, line, contents), start + len(line)
            except UNUSABLE as error:
                name, cut = _NAME.search(line, 0, 256), not line.endswith(b"\n")
                why = CUT if cut else reason(error)
                yield Damage(path, number, why, name[1].decode() if name else "", cut), start + len(line)
            start += len(line)


def _entry(path: Path, number: int, start: int, line: bytes, contents: bool) -> Entry:
    content, sum = unseal(line)
    record = record_of(parsed(content)) if contents else None
    try:
        brief = _BRIEFS.decode(content)
    except ValueError:
        record_of(parsed(content))  # which says better what is wrong
        raise
    name, compiled = digest([trial.id for trial in brief.trials]), brief.provenance.compiled
    return Entry(path, number, start, sum, name, brief.trials, (compiled and compiled.seconds) or 0.0, record)


def _entries(folder: Path, contents: bool) -> tuple[list[Entry], list[str], int]:
    """Return every readable record by name, with sentences for what is wrong, and how many are lost. The newest stands
    for records of one name that agree, as after a group was trained again."""
    entries: list[Entry] = []
    damaged: list[Damage] = []
    for path in disk.part(folder, "records"):
        try:
            for item, _ in read_log(path, contents):
                entries.append(item) if isinstance(item, Entry) else damaged.append(item)
        except UNUSABLE as error:
            damaged.append(Damage(path, 0, reason(error)))
    recorded = {entry.name for entry in entries}
    lost = [damage for damage in damaged if damage.name not in recorded]
    newest: list[Entry] = []
    for entry in sorted(entries, key=lambda entry: (entry.name, entry.path.name, -entry.number)):
        if not (newest and newest[-1].name == entry.name and _agree(newest[-1], entry)):
            newest.append(entry)
    return newest, _sentences(lost), len(lost)


def _agree(newest: Entry, other: Entry) -> bool:
    return newest.sum == other.sum or newest.content().trials == other.content().trials


def _sentences(lost: Iterable[Damage]) -> list[str]:
    """A sentence for each file and reason."""
    numbers: dict[tuple[Path, str], list[int]] = {}
    for damage in lost:
        numbers.setdefault((damage.path, damage.why), []).append(damage.number)
    return [
        f"{_lines(of)}records/{path.name} {'is' if len(of) == 1 else 'are'} left out: {why}."
        for (path, why), of in numbers.items()
    ]


def _lines(numbers: list[int]) -> str:
    """Return "Line 3 of ", or "Lines 3, 4 and 7 of ", with at most a few numbers; nothing for a whole file."""
    if len(numbers) == 1:
        return f"Line {numbers[0]} of " * bool(numbers[0])
    *most, last = numbers if len(numbers) <= SHOWN else [*numbers[:SHOWN], f"{len(numbers) - SHOWN} more"]
    return f"Lines {', '.join(map(str, most))} and {last} of "


class _Version(msgspec.Struct):
    schema: int


def _version(line: bytes) -> int:
    """The version of posenc's format that a line says; 0 where it says none."""
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        return msgspec.json.decode(line, type=_Version).schema
    return 0


class Writer:
    """The file to which this process adds lines, in each folder that it writes to."""

    def __init__(self):
        self._lock = threading.Lock()
        self._files: dict[tuple[int, Path], tuple[Path, int]] = {}

    def append(self, folder: Path, line: bytes) -> Path:
        """Add a line, synced to disk; returns its file. Raises `DiskError`, after which the file is as it was."""
        with self._lock, disk.guarded(folder):
            key = os.getpid(), folder.absolute()  # a fork has files of its own
            path, size = self._files.get(key) or (None, 0)
            if path is None or not path.exists() or path.stat().st_size != size:
                path, size = folder / _file_name(), 0  # nobody else writes there, now or later
            _append(path, line, create=not size)
            self._files[key] = path, size + len(line) + 1
            return path


def _append(path: Path, line: bytes, create: bool) -> None:
    descriptor = os.open(path, _FLAGS | (os.O_CREAT | os.O_EXCL if create else 0), 0o644)
    try:
        before = os.fstat(descriptor).st_size
        try:
            rest = memoryview(line + b"\n")
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        except BaseException:  # a part of a line must not stay, nor an empty file
            with contextlib.suppress(OSError):
                path.unlink() if create else os.ftruncate(descriptor, before)
            raise
    finally:
        os.close(descriptor)
    if create:
        disk.sync(path.parent)


def _file_name() -> str:
    host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:32].lstrip("._-") or "host"
    return f"{host}-{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}"


_BRIEFS = msgspec.json.Decoder(Brief)
_WRITER = Writer()
