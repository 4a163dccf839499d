"""The records of a run folder, written and read. A trial is done iff a readable record holds it.

Every line of a log that cannot be used is named, and reading goes on without it: it costs one group, which the next run
of the same command computes again. Once that is recorded, the damaged line is named no more. All lines are compared
with their checksums; their records are decoded only where the content is wanted.

Older versions wrote a file for each record, and packs of the lines of such files, named by the SHA-256 of their bytes.
Both are read as they were.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from posenc.lab.store import disk, logs
from posenc.lab.store.logs import Damage, Line, LineHead
from posenc.lab.store.records import (
    Stored,
    check_older,
    content_of,
    differing,
    digest,
    parsed,
    reason,
    record_of,
    unsealed,
)
from posenc.lab.store.schema import GroupRecord

UNUSABLE = (ValueError, TypeError, RecursionError, OSError)
"""What reading a damaged file raises."""
SHOWN = 6
"""Stretches of damaged lines that a message names."""
_PACK = re.compile(r"pack-([0-9a-f]{64})\.jsonl")
_BESIDE = (".index", ".damaged")
"""Ends of the names of what older versions kept beside their packs."""
_ID = re.compile(rb'"id":"([0-9a-f]{64})"')
_WRITER = logs.Writer()


class Entry(NamedTuple):
    """A readable record."""

    path: Path
    number: int
    """Of its line, from 1; 0 for a file of its own."""
    start: int
    """Where it begins, in bytes."""
    head: LineHead
    record: GroupRecord | None
    """Its content, where that was read."""
    sum: bytes = b""
    """The checksum of its line in a log."""

    @property
    def where(self) -> str:
        """Its place, as messages call it."""
        return f"{f'line {self.number} of ' * bool(self.number)}records/{self.path.name}"

    @property
    def order(self) -> tuple:
        """By name; of one name the newest first, as far as that is known."""
        packed = _PACK.fullmatch(self.path.name) is not None
        return self.head.name, packed, not self.number, self.path.name, -self.number

    def content(self) -> GroupRecord:
        """Its content, read again where it was not kept."""
        if self.record is not None:
            return self.record
        with disk.opened(self.path) as file:
            file.seek(self.start)
            line = file.readline() if self.number else file.read()
        return _record(logs.unseal(line)) if self.sum else unsealed(parsed(line))


class Survey(NamedTuple):
    """What the records hold, without the losses and counts."""

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
    return logs.seal(_head(record), content)


def survey(folder: Path) -> Survey:
    """The outcome of every recorded trial, and a sentence for each file or line that is wrong."""
    entries, problems, _ = _entries(folder, contents=False)
    outcomes: dict[str, str] = {}
    compiling = 0.0
    for entry, kept in _once(entries, problems):
        compiling += entry.head.compiled
        outcomes |= {entry.head.ids[n]: entry.head.outcomes[n] for n in kept}
    return Survey(outcomes, tuple(problems), compiling)


def read_records(folder: Path) -> Stored:
    """All records of a run folder, by name; of a trial that two of them hold the first is taken."""
    entries, problems, lost = _entries(folder, contents=True)
    records = []
    for entry, kept in _once(entries, problems):
        record = entry.content()
        partial = len(kept) < len(record.trials)
        records.append(dataclasses.replace(record, trials=tuple(record.trials[n] for n in kept)) if partial else record)
    return Stored(tuple(records), tuple(problems), lost)


def check_version(folder: Path) -> None:
    """Refuse a folder with records of a newer posenc, before anything is computed that could not be stored there."""
    for path in disk.part(folder, "records"):
        if path.is_file() and path.suffix not in _BESIDE:
            with disk.opened(path) as file:  # a log is of one version, as it has one writer
                check_older(path, file.readline() if path.suffix == logs.SUFFIX else file.read())


class Recorded:
    """Which records a run folder holds, by their heads alone. Each log is read on from where it ended before."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._ids: dict[str, tuple[str, ...]] = {}
        self._ends: dict[str, tuple[int, int]] = {}
        """File to the bytes and the lines that were read."""

    def names(self) -> set[str]:
        """The names of the records: that of a group, where all its trials were finished together. What a file of one
        record holds is not looked at."""
        return self._read_on() | self._ids.keys()

    def ids(self, name: str) -> list[str]:
        """The trials of the record of this name; none where there is no such record, or a damaged one."""
        self._read_on()
        if name in self._ids:
            return list(self._ids[name])
        path = disk.inside(self._folder, "records", f"{name}.json")
        try:
            return unsealed(parsed(disk.content(path))).ids if path.is_file() else []
        except UNUSABLE:  # it is computed again, as `survey` says of it
            return []

    def beside(self, names: Iterable[str]) -> set[str]:
        """The trials of the records that have other names than these."""
        return {id for name in self.names().difference(names) for id in self.ids(name)}

    def _read_on(self) -> set[str]:
        """Read what was added to the logs; returns the names of the records that have files of their own."""
        place = disk.inside(self._folder, "records")
        names = [name for name in (os.listdir(place) if place.is_dir() else []) if not name.startswith(".")]
        for name in names:
            start, _ = self._ends.get(name, (0, 0))
            try:
                if name.endswith(logs.SUFFIX) and os.stat(place / name).st_size > start:
                    self._read_log(place / name)
            except UNUSABLE:  # `survey` names it
                continue
        return {name.removesuffix(".json") for name in names if name.endswith(".json")}

    def _read_log(self, path: Path) -> None:
        if _PACK.fullmatch(path.name):
            self._ids |= {e.head.name: e.head.ids for e in _of_pack(path) if isinstance(e, Entry)}
            self._ends[path.name] = os.stat(path).st_size, 0
            return
        start, number = self._ends.get(path.name, (0, 0))
        for line, end in logs.read_log(path, start, number + 1):
            if isinstance(line, Damage) and line.cut:
                return  # its end may come
            if isinstance(line, Line):
                self._ids[line.head.name] = line.head.ids
            self._ends[path.name] = end, line.number


def _entries(folder: Path, contents: bool) -> tuple[list[Entry], list[str], int]:
    """Every readable record by name; sentences for what is wrong; how many records are lost."""
    entries: list[Entry] = []
    damaged: list[tuple[Path, Damage]] = []
    for path in disk.part(folder, "records"):
        try:
            for item in _of_file(path, contents):
                entries.append(item) if isinstance(item, Entry) else damaged.append((path, item))
        except UNUSABLE as error:
            damaged.append((path, Damage(0, reason(error), path.stem)))
    recorded = {entry.head.name for entry in entries}
    lost = [(path, damage) for path, damage in damaged if damage.name not in recorded]
    return sorted(entries, key=lambda entry: entry.order), _sentences(lost), len(lost)


def _of_file(path: Path, contents: bool) -> Iterator[Entry | Damage]:
    """What a file in `records/` holds. Raises `UNUSABLE`."""
    if path.is_symlink():
        raise ValueError("it is a link, and a run folder holds plain files only")
    if path.suffix in _BESIDE:
        if path.suffix == _BESIDE[0] and not path.with_suffix(logs.SUFFIX).exists():
            raise ValueError("its pack is missing, whose trials run again")
    elif _PACK.fullmatch(path.name):
        yield from _of_pack(path, contents)
    elif path.suffix == logs.SUFFIX:
        start = 0
        for line, end in logs.read_log(path):
            yield line if isinstance(line, Damage) else _of_line(path, line, start, contents)
            start = end
    else:
        record = unsealed(parsed(disk.content(path)))
        yield Entry(path, 0, 0, _head(record, path.stem), record if contents else None)


def _of_line(path: Path, line: Line, start: int, contents: bool) -> Entry | Damage:
    try:
        record = _record(line) if contents else None
    except UNUSABLE as error:  # a checksum that is right, and numbers that cannot be: not written by us
        return Damage(line.number, reason(error), line.head.name)
    return Entry(path, line.number, start, line.head, record, line.sum)


def _of_pack(path: Path, contents: bool = False) -> Iterator[Entry | Damage]:
    """The lines of a pack of an older version. Only readable records were packed, so that those of a pack which still
    has its checksum are; of another one each line has a checksum of its own."""
    content, start, sound = disk.content(path), 0, True
    trusted = path.name == f"pack-{hashlib.sha256(content).hexdigest()}{logs.SUFFIX}"
    for number, line in enumerate(io.BytesIO(content), 1):
        try:
            record = unsealed(parsed(line), trusted)
            yield Entry(path, number, start, _head(record), record if contents else None)
        except UNUSABLE as error:
            yield Damage(number, reason(error), digest([id.decode() for id in _ID.findall(line)]))
            sound = False
        start += len(line)
    if sound and not trusted:
        yield Damage(0, "it is not as it was written, so lines may be missing; those that are there are read", "")


def _record(line: Line) -> GroupRecord:
    """The record of a line of a log. Raises `UNUSABLE`."""
    record = record_of(parsed(line.content))
    if record.ids != list(line.head.ids):
        raise ValueError("its head names other trials than its record")
    return record


def _head(record: GroupRecord, name: str = "") -> LineHead:
    compiled = record.provenance.get("compiled")
    seconds = compiled.get("seconds") if isinstance(compiled, dict) else None
    outcomes = tuple(trial.outcome for trial in record.trials)
    return LineHead(name or digest(record.ids), tuple(record.ids), outcomes, float(seconds or 0.0))


def _once(entries: Sequence[Entry], problems: list[str]) -> Iterator[tuple[Entry, list[int]]]:
    """Each record with the numbers of those of its trials that no earlier one holds. What two hold is named, unless
    they are of one name and agree, as where a group was trained again."""
    first: dict[str, Entry] = {}
    newest: Entry | None = None
    for entry in entries:
        if newest is not None and newest.head.name == entry.head.name and _agree(newest, entry):
            continue
        kept, newest = [], entry
        for n, id in enumerate(entry.head.ids):
            if id in first:
                problems.append(differing(id, (first[id].where, first[id].content()), (entry.where, entry.content())))
            else:
                first[id] = entry
                kept.append(n)
        if kept:
            yield entry, kept


def _agree(newest: Entry, other: Entry) -> bool:
    return bool(other.sum) and newest.sum == other.sum or newest.content().trials == other.content().trials


def _sentences(lost: Iterable[tuple[Path, Damage]]) -> list[str]:
    """A sentence for each file and reason."""
    numbers: dict[tuple[Path, str], list[int]] = {}
    for path, damage in lost:
        numbers.setdefault((path, damage.why), []).append(damage.number)
    return [
        f"{_lines(of)}records/{path.name} {'is' if len(of) == 1 else 'are'} left out: {why}."
        for (path, why), of in numbers.items()
    ]


def _lines(numbers: list[int]) -> str:
    """ "Line 3 of ", "Lines 1–4 and 7 of "; of many stretches the first few; nothing for a whole file."""
    if numbers == [0]:
        return ""
    apart = itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    stretches = [[n for _, n in of] for _, of in apart]
    shown = [f"{s[0]}–{s[-1]}" if len(s) > 1 else str(s[0]) for s in stretches[:SHOWN]]
    if len(stretches) > SHOWN:
        shown.append(f"{sum(map(len, stretches[SHOWN:]))} more")
    *most, last = shown
    text = f"{', '.join(most)} and {last}" if most else last
    return f"{'Line' if len(numbers) == 1 else 'Lines'} {text} of "
