"""Packs: many records in one file, each line as its own file held it, and an index beside it that `status` reads.

    records/pack-<sha>.jsonl     named by the SHA-256 of its bytes; it never changes
    records/pack-<sha>.index     its own checksum, then for each line: name, trials, outcomes, checksum and length

A checksum is of a line's bytes, which is a hundred times as fast as one of its content. Only records that could be read
are packed, so what still has its checksum is as good as it was. Without an index, or with a damaged one, each line is
read and its own seal looked at.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from posenc.lab.store import disk
from posenc.lab.store.records import SCHEMA, digest, parsed, reason, unsealed
from posenc.lab.store.schema import GroupRecord
from posenc.language.echo import echoed

PACK = re.compile(r"pack-([0-9a-f]{64})\.jsonl")
INDEX = re.compile(r"pack-[0-9a-f]{64}\.index")
DAMAGED = ".damaged"
"""Ends the name of a pack that was damaged, once its other lines are packed again."""
SHOWN = 6
"""Stretches of damaged lines that a message names."""
MENDED = "`posenc compact` makes it again"


class Entry(NamedTuple):
    """What is known of a stored record without its content."""

    name: str
    """The name of its own file, which is that of its group where all trials were finished together."""
    ids: tuple[str, ...]
    outcomes: tuple[str, ...]
    """"done" or "diverged", of each trial."""
    compiled: float
    """Seconds that compiling took; 0 for a record that does not say."""
    sum: str
    """The SHA-256 of its bytes."""
    size: int
    """Bytes of its line, the line break included."""


class Line(NamedTuple):
    """A record of a pack that can be read."""

    number: int
    """From 1."""
    start: int
    """Where it begins, in bytes."""
    entry: Entry


class Pack(NamedTuple):
    """What a pack holds, and a sentence for what is wrong with it."""

    lines: tuple[Line, ...]
    problems: tuple[str, ...] = ()
    lost: int = 0
    """Lines that cannot be read."""
    indexed: bool = True
    """Whether its index is there and whole."""
    content: bytes = b""

    def record(self, line: Line) -> GroupRecord:
        """The record of a line. Raises `ValueError` for one of numbers that cannot be."""
        return unsealed(parsed(self.content[line.start : line.start + line.entry.size]), trusted=True)


def entry_of(record: GroupRecord, content: bytes, name: str | None = None) -> Entry:
    """What an index says of a record; `content` is the line that holds it."""
    about = record.provenance.get("compiled")
    seconds = about.get("seconds") if isinstance(about, dict) else None
    compiled = float(seconds) if isinstance(seconds, int | float) else 0.0
    outcomes = tuple(trial.outcome for trial in record.trials)
    return Entry(name or digest(record.ids), tuple(record.ids), outcomes, compiled, checksum(content), len(content))


def checksum(content: bytes) -> str:
    """The SHA-256 of a line."""
    return hashlib.sha256(content).hexdigest()


def name_of(content: bytes) -> str:
    """The file name of a pack with this content."""
    return f"pack-{checksum(content)}.jsonl"


def index_path(pack: Path) -> Path:
    """Where the index of a pack is."""
    return pack.with_suffix(".index")


def index_text(pack: Path, entries: Sequence[Entry]) -> bytes:
    """The content of an index: a line with its checksum, and a line with the rest, so that it is not one JSON value
    and no reader of records takes it for one."""
    rest = json.dumps({"pack": pack.name, "lines": entries}, separators=(",", ":")).encode()
    head = {"schema": SCHEMA, "sha256": checksum(rest)}
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + rest + b"\n"


def read_index(pack: Path) -> list[Entry]:
    """The entries of a pack, in the order of its lines. Raises `FileNotFoundError` where there is no index, and
    `ValueError` for a damaged one."""
    place = index_path(pack)
    if place.is_symlink():
        raise ValueError("it is a link, and a run folder holds plain files only")
    head, _, rest = disk.content(place).partition(b"\n")
    try:
        about = json.loads(head)
        schema, sum = about["schema"], about["sha256"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("it is empty, cut short or not an index") from None
    if schema != SCHEMA:
        raise ValueError(f"it has schema {echoed(schema)}, this posenc reads {SCHEMA}")
    if checksum(rest.removesuffix(b"\n")) != sum:
        raise ValueError("its checksum does not match its content, so it was damaged or edited")
    content = json.loads(rest)
    if content["pack"] != pack.name:
        raise ValueError("it is the index of another pack")
    return [Entry(name, tuple(ids), tuple(outcomes), *more) for name, ids, outcomes, *more in content["lines"]]


def placed(entries: Sequence[Entry]) -> Iterator[Line]:
    """The entries of an index with their places in the pack."""
    start = 0
    for number, entry in enumerate(entries, 1):
        yield Line(number, start, entry)
        start += entry.size


def read_pack(pack: Path) -> Pack:
    """The lines of a pack that can be read: those whose bytes have the checksums of the index.

    Raises `FileNotFoundError` where there is no pack, and `ValueError` for what is not a plain file.
    """
    where = f"records/{pack.name}"
    if pack.is_symlink():
        raise ValueError("it is a link, and a run folder holds plain files only")
    content = disk.content(pack)
    try:
        entries = read_index(pack)
    except FileNotFoundError:
        return _without_index(where, content, ())
    except (ValueError, TypeError, OSError) as error:
        text = f"records/{index_path(pack).name} is not used: {reason(error)}; {MENDED}."
        return _without_index(where, content, (text,))
    if name_of(content) == pack.name:
        return Pack(tuple(placed(entries)), content=content)
    at = {checksum(line): start for start, line in _split(content)}
    lines = [Line(n, at[e.sum], e) for n, e in enumerate(entries, 1) if e.sum in at]
    wrong = [n for n, e in enumerate(entries, 1) if e.sum not in at]
    why = "the bytes do not match their checksum, so they were damaged or edited"
    return Pack(tuple(lines), _left_out(where, wrong, why), len(wrong), content=content)


def line_of(pack: Path, line: Line) -> bytes:
    """The bytes of a line. Raises `ValueError` where they are not those that were packed."""
    with disk.opened(pack) as file:
        file.seek(line.start)
        content = file.read(line.entry.size)
    if checksum(content) != line.entry.sum:
        raise ValueError("its checksum does not match its content, so it was damaged or edited")
    return content


def present(folder: Path) -> list[Path]:
    """The packs of a run folder, by name."""
    place = disk.inside(folder, "records")
    names = os.listdir(place) if place.is_dir() else []
    return [place / name for name in sorted(names) if PACK.fullmatch(name)]


def missing(pack: Path) -> str:
    """A sentence for an index whose pack is gone."""
    return f"records/{pack.name} is missing, though its index is there; its trials run again."


def _without_index(where: str, content: bytes, problems: tuple[str, ...]) -> Pack:
    lines, wrong, why = [], [], ""
    for number, (start, line) in enumerate(_split(content), 1):
        try:
            lines.append(Line(number, start, entry_of(unsealed(parsed(line)), line)))
        except (ValueError, TypeError, RecursionError) as error:
            wrong.append(number)
            why = why or reason(error)
    if not content:
        wrong, why = [1], "the file is empty"
    if not wrong and name_of(content) != where.rpartition("/")[2]:
        problems += (f"{where} is not as it was written, so lines may be missing; those that are there are read.",)
        return Pack(tuple(lines), problems, 1, False, content)
    return Pack(tuple(lines), (*problems, *_left_out(where, wrong, why)), len(wrong), False, content)


def _left_out(where: str, wrong: list[int], why: str) -> tuple[str, ...]:
    if not wrong:
        return ()
    return (f"{_numbers(wrong)} of {where} {'is' if len(wrong) == 1 else 'are'} left out: {why}.",)


def _split(content: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines with their places, each with its line break."""
    start = 0
    while start < len(content):
        end = content.find(b"\n", start) + 1 or len(content)
        yield start, content[start:end]
        start = end


def _numbers(numbers: list[int]) -> str:
    """ "Line 3", "Lines 1–4 and 7"; of many stretches the first few."""
    stretches: list[list[int]] = []
    for n in numbers:
        if stretches and stretches[-1][1] == n - 1:
            stretches[-1][1] = n
        else:
            stretches.append([n, n])
    shown = [str(a) if a == b else f"{a}–{b}" for a, b in stretches[:SHOWN]]
    if len(stretches) > SHOWN:
        shown.append(f"{sum(b + 1 - a for a, b in stretches[SHOWN:])} more")
    *most, last = shown
    text = f"{', '.join(most)} and {last}" if most else last
    return f"{'Line' if len(numbers) == 1 else 'Lines'} {text}"
