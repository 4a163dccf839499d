"""What the records of a run folder hold, single files and packs alike. A trial is done iff a readable record holds it.

Every file, and every line of a pack, that cannot be used is named, and reading goes on without it: it costs one group,
which the next run of the same command computes again. Single files are read and their seals looked at; packs are
compared with their checksums, and their records are read only where the content is wanted.

A record that is packed is first written to its pack and then removed as a file, so one that vanishes while a folder is
read is in a pack that came meanwhile. One that is in both counts once; a file is newer than the line of its name.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from posenc.lab.store import disk, packs
from posenc.lab.store.records import Stored, check_older, differing, parsed, reason, unsealed
from posenc.lab.store.schema import GroupRecord

UNUSABLE = (ValueError, TypeError, RecursionError, OSError)
"""What reading a damaged file raises."""


class Found(NamedTuple):
    """A readable record, in a file of its own or in a pack."""

    where: str
    """The file, and the line, as messages call it."""
    entry: packs.Entry
    path: Path
    line: packs.Line | None
    """Of a pack."""
    record: GroupRecord | None
    """Its content, where that was read."""

    def content(self) -> GroupRecord:
        """Its content, read again where it was not kept."""
        if self.record is not None:
            return self.record
        if self.line is None:
            return unsealed(parsed(disk.content(self.path)))
        return unsealed(parsed(packs.line_of(self.path, self.line)), trusted=True)


class Survey(NamedTuple):
    """What the records hold, without the losses and counts."""

    outcomes: dict[str, str]
    """Trial to "done" or "diverged"."""
    problems: tuple[str, ...]
    compiling: float
    """Seconds that compiling took."""


def survey(folder: Path) -> Survey:
    """The outcome of every recorded trial, and a sentence for each file or line that is wrong."""
    found, problems, _ = _found(folder, contents=False)
    outcomes: dict[str, str] = {}
    compiling = 0.0
    for one, kept in _once(found, problems):
        compiling += one.entry.compiled
        outcomes |= {one.entry.ids[n]: one.entry.outcomes[n] for n in kept}
    return Survey(outcomes, tuple(problems), compiling)


def read_records(folder: Path) -> Stored:
    """All records of a run folder; a trial that two of them hold is taken from the one whose name sorts first."""
    found, problems, lost = _found(folder, contents=True)
    records = []
    for one, kept in _once(found, problems):
        record = one.content()
        whole = len(kept) == len(record.trials)
        records.append(record if whole else dataclasses.replace(record, trials=tuple(record.trials[n] for n in kept)))
    return Stored(tuple(records), tuple(problems), lost)


def check_version(folder: Path) -> None:
    """Refuse a folder with records of a newer posenc, before anything is computed that could not be stored there."""
    for path in disk.part(folder, "records"):
        if path.is_file() and path.suffix != ".index":
            for line in disk.content(path).split(b"\n") if packs.PACK.fullmatch(path.name) else (disk.content(path),):
                check_older(path, line)


class Recorded:
    """Which records a run folder holds, by name alone. Packs never change, so each index is read once."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._packs: dict[Path, dict[str, packs.Line]] = {}

    def names(self) -> set[str]:
        """The names of the records: that of a group, where all its trials were finished together. What a file holds is
        not looked at."""
        place = disk.inside(self._folder, "records")
        files = os.listdir(place) if place.is_dir() else []
        alone = {name.removesuffix(".json") for name in files if name.endswith(".json") and name[0] != "."}
        return alone.union(*self._lines().values())

    def ids(self, name: str) -> list[str]:
        """The trials of the record of this name; none where there is no such record, or a damaged one."""
        path = disk.inside(self._folder, "records", f"{name}.json")
        if path.is_file():  # before packs, since a record is in one of them before its file is removed
            try:
                return unsealed(parsed(disk.content(path))).ids
            except UNUSABLE:  # it is computed again, as `survey` says of it
                pass
        for pack, lines in self._lines().items():
            if name in lines:
                try:
                    packs.line_of(pack, lines[name])
                except UNUSABLE:
                    continue
                return list(lines[name].entry.ids)
        return []

    def beside(self, names: Iterable[str]) -> set[str]:
        """The trials of the records that have other names than these."""
        return {id for name in self.names().difference(names) for id in self.ids(name)}

    def _lines(self) -> dict[Path, dict[str, packs.Line]]:
        for path in (found := packs.present(self._folder)):
            if path not in self._packs:
                self._packs[path] = {line.entry.name: line for line in _lines_of(path)}
        return {path: self._packs[path] for path in found}


def _lines_of(pack: Path) -> Iterable[packs.Line]:
    """The lines that the index names, whatever the pack holds; without an index, those that can be read."""
    try:
        return packs.placed(packs.read_index(pack))
    except UNUSABLE:
        pass
    try:
        return packs.read_pack(pack).lines
    except UNUSABLE:
        return ()


def singles(folder: Path) -> list[Path]:
    """The files in which records stand alone."""
    return [path for path in disk.part(folder, "records") if path.suffix == ".json"]


def single(path: Path, contents: bool = True) -> Found:
    """The record of a file. Raises `ValueError`, `TypeError`, `RecursionError` or `OSError`."""
    if path.is_symlink():
        raise ValueError("it is a link, and a run folder holds plain files only")
    content = disk.content(path)
    record = unsealed(parsed(content))
    entry = packs.entry_of(record, content, path.stem)
    return Found(f"records/{path.name}", entry, path, None, record if contents else None)


def _found(folder: Path, contents: bool) -> tuple[list[Found], list[str], int]:
    """Every readable record by name, single files before packs; sentences for what is wrong; how many are lost."""
    found, problems, lost, seen, again = [], [], 0, set(), True
    while again:
        every, again = [path for path in disk.part(folder, "records") if path.name not in seen], False
        seen |= {path.name for path in every}
        for path in every:
            try:
                if packs.PACK.fullmatch(path.name):
                    pack = packs.read_pack(path)
                    readable = list(_packed(path, pack, contents, problems))
                    found += readable
                    problems += pack.problems
                    lost += pack.lost + len(pack.lines) - len(readable)
                elif packs.INDEX.fullmatch(path.name):
                    if (pack_path := path.with_suffix(".jsonl")).name not in seen:
                        problems.append(packs.missing(pack_path))
                        lost += 1
                elif path.suffix != packs.DAMAGED:
                    found.append(single(path, contents))
            except FileNotFoundError:
                again = True  # it was packed meanwhile
            except UNUSABLE as error:
                problems.append(f"records/{path.name} is left out: {reason(error)}.")
                lost += 1
    return sorted(found, key=lambda one: (one.entry.name, one.line is not None, one.path.name)), problems, lost


def _packed(path: Path, pack: packs.Pack, contents: bool, problems: list[str]) -> Iterable[Found]:
    for line in pack.lines:
        where = f"line {line.number} of records/{path.name}"
        try:
            yield Found(where, line.entry, path, line, pack.record(line) if contents else None)
        except UNUSABLE as error:  # checksums that are right, and numbers that cannot be: not written by us
            problems.append(f"{where[0].upper()}{where[1:]} is left out: {reason(error)}.")


def _once(found: Sequence[Found], problems: list[str]) -> Iterable[tuple[Found, list[int]]]:
    """Each record with the numbers of those of its trials that no earlier one holds; what two hold is named."""
    first: dict[str, Found] = {}
    shown = None
    for one in found:
        shadowed = shown is not None and one.line is not None and one.entry.name == shown.entry.name
        if shadowed and (shown.line is None or shown.entry.sum == one.entry.sum):
            continue
        shown, kept = one, []
        for n, id in enumerate(one.entry.ids):
            if id in first:
                problems.append(differing(id, (first[id].where, first[id].content()), (one.where, one.content())))
            else:
                first[id] = one
                kept.append(n)
        if kept:
            yield one, kept
