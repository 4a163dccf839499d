"""Logs: append-only files of lines, each sealed, each file with one writer for all time.

    records/<host>-<pid>-<token>.jsonl
    {"schema":2,"sha256":"…","name":"…","ids":[…],"outcomes":[…],"compiled":0.0,"run":{…},…,"trials":[…],…}

The SHA-256 is that of the bytes which follow it, up to the end of the line. What `status` and workers look for stands
in front of the record, whose first key is "run", so that they decode the head alone. Lines of schema 1, which are read
as they were, hold the record under a key of its own. A process makes a file of its own when it writes its first
record, so that a line which a kill cut short is the last of its file and is never joined to another.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from posenc.lab.store import disk

SCHEMA = 2
"""Of a line."""
SUFFIX = ".jsonl"
LARGEST = 2**28
"""Bytes after which a writer begins another file."""
CUT = "it has no end, so it is being written, or was cut short by a kill"
DAMAGED = "its checksum does not match its content, so it was damaged or edited"
_START = re.compile(rb'\{"schema":[12],"sha256":"([0-9a-f]{64})",')
"""Of a line; what follows is sealed by the checksum."""
_RECORD = re.compile(rb',(?:"record":|(?="run":))')
"""Between the head and the record."""
_NAME = re.compile(rb'"name":"([0-9a-f]{32})",')
_FLAGS = os.O_APPEND | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class LineHead(msgspec.Struct, frozen=True):
    """What is known of a record without its content."""

    name: str
    """The digest of its trials, which is the name of their group where all were finished together."""
    ids: tuple[str, ...]
    outcomes: tuple[Literal["done", "diverged"], ...]
    """Of each trial."""
    compiled: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Seconds that compiling took; 0 for a record that does not say."""

    def __post_init__(self):
        if len(self.ids) != len(self.outcomes):
            raise ValueError("it has not one outcome for each trial")


class Line(NamedTuple):
    """A line of a log that is as it was written."""

    number: int
    """From 1."""
    head: LineHead
    content: bytes
    """The record as JSON."""
    sum: bytes
    """The checksum of both."""


class Damage(NamedTuple):
    """A line of a log that cannot be used."""

    number: int
    why: str
    """The end of a sentence."""
    name: str
    """That of its record, where that can still be read, or empty."""
    cut: bool = False
    """Whether it is the last line and has no end."""


def seal(head: LineHead, content: bytes) -> bytes:
    """A line of a log, without its end."""
    sealed = msgspec.json.encode(head)[1:-1] + b"," + content.removeprefix(b"{")
    return b'{"schema":%d,"sha256":"%s",%s' % (SCHEMA, hashlib.sha256(sealed).hexdigest().encode(), sealed)


def unseal(line: bytes, number: int = 1) -> Line:
    """What a line of a log says. Raises `ValueError`."""
    line = line.removesuffix(b"\n")
    start = _START.match(line)
    if not start:
        raise ValueError(_why_no_line(line))
    if hashlib.sha256(memoryview(line)[start.end() :]).hexdigest().encode() != start[1]:
        raise ValueError(DAMAGED)
    record = _RECORD.search(line, start.end())
    if not record:
        raise ValueError("it holds no 'run', with which a record begins")
    try:
        head = _HEADS.decode(b"{" + line[start.end() : record.start()] + b"}")
    except ValueError as error:
        raise ValueError(f"its head cannot be: {error}") from None
    content = b"{" + line[record.end() :] if record[0] == b"," else line[record.end() : -1]
    return Line(number, head, content, start[1])


_HEADS = msgspec.json.Decoder(LineHead)


def read_log(path: Path, start: int = 0, number: int = 1) -> Iterator[tuple[Line | Damage, int]]:
    """The lines of a log from a place on, each with the place where it ends.

    Raises `FileNotFoundError`, `DiskError`, and `ValueError` for what is not a plain file.
    """
    if path.is_symlink():
        raise ValueError("it is a link, and a run folder holds plain files only")
    with disk.opened(path) as file:
        file.seek(start)
        for number, line in enumerate(file, number):  # noqa: B020
            start += len(line)
            try:
                yield unseal(line, number), start
            except ValueError as error:
                name, cut = _NAME.search(line, 0, 256), not line.endswith(b"\n")
                why = CUT if cut else str(error)
                yield Damage(number, why, name[1].decode() if name else "", cut), start


def version(line: bytes) -> int | None:
    """The version of posenc's format that a line says, if it says one."""
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        return msgspec.json.decode(line, type=_Version).schema
    return None


class _Version(msgspec.Struct):
    schema: int


def _why_no_line(line: bytes) -> str:
    if (newer := version(line) or 0) > SCHEMA:
        return f"it has schema {newer}, this posenc reads up to {SCHEMA}; install the newer one"
    return "it is empty, cut short or not a line of a log"


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
            if path is None or size > LARGEST or not path.exists() or path.stat().st_size != size:
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
