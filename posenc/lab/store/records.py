"""Records as JSON, and bundles: files of records to commit, each record with a checksum of its own.

A reader names every record that it cannot use and goes on without it.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from posenc.lab.metrics import share
from posenc.lab.store import disk
from posenc.lab.store.schema import GroupRecord, UnfinishedTrial, check_record, planned, read, written
from posenc.language.echo import echoed

SCHEMA = 1
"""Schema of a record in a bundle, and of a bundle."""
TOLERANCE = 0.01
"""Two records of one trial whose accuracies are further apart than this are reported to differ."""
PACKED = ".gz"
"""The end of the name of a bundle that is compressed."""


@dataclass(frozen=True)
class Stored:
    """Content of a folder of records, in the order of file names, and a sentence for each file that is wrong."""

    records: tuple[GroupRecord, ...]
    problems: tuple[str, ...]
    unreadable: int = 0
    """How many records the problems leave out."""


@dataclass(frozen=True)
class Bundle:
    """Content of a committed file: records, and the trials without a result."""

    name: str
    stored: Stored
    unfinished: tuple[UnfinishedTrial, ...]


def canonical(thing: Any) -> str:
    """The one JSON text of a value: keys sorted, no spaces, NaN and infinities as null."""
    return json.dumps(plain(thing), sort_keys=True, separators=(",", ":"), allow_nan=False)


def plain(thing: Any) -> Any:
    """Return the value out of dicts, lists and JSON's own scalars; NumPy scalars and arrays become theirs."""
    if isinstance(thing, dict):
        return {str(key): plain(value) for key, value in thing.items()}
    if hasattr(thing, "tolist"):
        thing = thing.tolist()
    if isinstance(thing, list | tuple):
        return [plain(value) for value in thing]
    if isinstance(thing, float) and not math.isfinite(thing):
        return None
    return thing


def checksum(text: str) -> str:
    """The SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def digest(ids: list[str]) -> str:
    """A name for a set of trials: 32 hexadecimal digits, whatever their order."""
    return checksum("\n".join(sorted(ids)))[:32]


def content_of(record: GroupRecord) -> dict[str, Any]:
    """A record as plain JSON, in the order of its keys. Raises `ValueError` for what could not be read back."""
    body = plain(written(record))
    check_record(read(GroupRecord, body))
    if not record.trials:
        raise ValueError("A record holds at least one trial, and this one has none.")
    return body


def read_bundle(path: Path) -> Bundle:
    """One committed file. A record of it that cannot be used is named in `stored.problems`."""
    try:
        parts = _parts(_unpacked(path, disk.content(path)))
        contents = _parts(parts.pop("records", b"null"), list)
        content_of_file = {name: parsed(part) for name, part in parts.items()}
        _version(content_of_file)
    except (ValueError, RecursionError, OSError) as error:
        raise ValueError(f"{str(path)!r} is not a bundle of records: {reason(error)}.") from None
    records, problems = [], []
    for number, content in enumerate(contents):
        try:
            records.append((f"record {number}", unsealed(parsed(content))))  # one by one, to hold little at a time
        except (ValueError, TypeError, RecursionError) as error:
            problems.append(f"record {number} is left out: {reason(error)}.")
    rest = content_of_file.get("unfinished") or []
    if not isinstance(rest, list):
        raise ValueError(f"{str(path)!r} is not a bundle of records: its 'unfinished' is not a list.")
    lines = ((trial, f"unfinished trial {number} of {str(path)!r}") for number, trial in enumerate(rest, 1))
    unfinished = tuple(planned(UnfinishedTrial, *line, "bundle the run again") for line in lines)
    stored = once(records, problems, len(problems))
    return Bundle(str(content_of_file.get("name") or path.name.partition(".")[0]), stored, unfinished)


@dataclass
class _Task:
    label: str


@dataclass
class _Label:
    label: str
    task: _Task


@dataclass
class _Labels:
    """As much of a bundle as names what was run; its records are read one by one, since some may be damaged."""

    records: list[msgspec.Raw]


def labels(path: Path) -> list[tuple[str, str]]:
    """The schemes and tasks of the records in a committed file, of each record a pair; a record without them is left
    out. Nothing else is read, so that numbers and checksums are not checked."""
    try:
        contents = msgspec.json.decode(_unpacked(path, disk.content(path)), type=_Labels).records
    except (ValueError, RecursionError, OSError) as error:
        raise ValueError(f"{str(path)!r} is not a bundle of records: {reason(error)}.") from None
    pairs = []
    for content in contents:
        with contextlib.suppress(ValueError, RecursionError):
            record = msgspec.json.decode(content, type=_Label)
            pairs.append((record.label, record.task.label))
    return pairs


def write_bundle(
    path: Path, name: str, records: tuple[GroupRecord, ...], unfinished: Sequence[UnfinishedTrial]
) -> Path:
    """One compact file, the same bytes for the same results: without host, times, or order of arrival. One whose name
    ends in `.gz` is compressed."""
    kept = []
    for record in sorted(records, key=lambda record: digest(record.ids)):
        lasting = {k: v for k, v in record.provenance.items() if k not in ("host", "ended", "seconds", "compiled")}
        kept.append(_sealed(replace(record, provenance=lasting)))
    body = ",\n".join(canonical(record) for record in kept)
    rest = canonical([written(trial) for trial in unfinished])
    head = f'{{"name":{canonical(name)},"schema":{SCHEMA},"unfinished":{rest},"records":[\n'
    with disk.guarded(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    content = f"{head}{body}\n]}}\n".encode()
    return disk.write(path, gzip.compress(content, mtime=0) if path.suffix == PACKED else content)


def _sealed(record: GroupRecord) -> dict[str, Any]:
    """A record of a bundle, with its schema and checksum."""
    body = content_of(record)
    return {"schema": SCHEMA, "sha256": _sum(body | {"schema": SCHEMA}), **body}


def unsealed(content: Any) -> GroupRecord:
    """The record that JSON holds, if its seal and its numbers are right. Raises `ValueError` or `TypeError`."""
    if not isinstance(content, dict):
        raise ValueError("it is JSON, but not a record")
    _version(content)
    if content.get("sha256") not in _sums({k: v for k, v in content.items() if k != "sha256"}):
        raise ValueError("its checksum does not match its content, so it was damaged or edited")
    return record_of(content)


def record_of(content: Any) -> GroupRecord:
    """The record that JSON holds, if its numbers can be. Raises `ValueError` or `TypeError`."""
    record = read(GroupRecord, content)
    check_record(record)
    return record


def parsed(content: bytes | msgspec.Raw) -> Any:
    """Return the value of JSON. Raises `ValueError`."""
    try:
        return msgspec.json.decode(content)
    except ValueError:
        raise ValueError("it is empty, cut short or not JSON") from None


def _parts(content: bytes | msgspec.Raw, kind: type = dict) -> Any:
    """The parts of a bundle, or its records, as JSON that is not read yet. Raises `ValueError`."""
    parsed_kind = dict[str, msgspec.Raw] if kind is dict else list[msgspec.Raw]
    try:
        return msgspec.json.decode(content, type=parsed_kind)
    except msgspec.ValidationError:
        raise ValueError("it has no list of records") from None
    except ValueError:
        return parsed(bytes(content))


def _unpacked(path: Path, content: bytes) -> bytes:
    """The content of a bundle, which may be compressed. Raises `ValueError`."""
    if path.suffix != PACKED:
        return content
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            unpacked = file.read(disk.LARGEST + 1)
    except (OSError, EOFError, zlib.error):
        raise ValueError("it is not compressed by gzip, or is cut short") from None
    if len(unpacked) > disk.LARGEST:
        raise ValueError(f"it has more than {disk.LARGEST} bytes when it is unpacked")
    return unpacked


def _version(record: dict) -> None:
    schema = record.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise ValueError("it names no schema version")
    if schema > SCHEMA:
        raise ValueError(f"it has schema {echoed(schema)}, this posenc reads up to {SCHEMA}; install the newer one")


def _sum(body: dict) -> str:
    """The checksum of JSON, whatever the order of its keys."""
    return checksum(json.dumps(body, sort_keys=True, separators=(",", ":")))


_SMALL = re.compile(r"(?<=[:,\[])(?:0\.0000\d+|[\d.]+e-\d)(?=[],}])")
"""Numbers that msgspec and Python write in two ways, such as 0.00001 and 1e-05."""


def _sums(body: dict) -> Iterator[str]:
    """The checksum as msgspec writes JSON, which is fast, and as Python does, whose small numbers differ."""
    text = msgspec.json.encode(body, order="sorted").decode()
    yield checksum(text)
    yield checksum(_SMALL.sub(lambda number: repr(float(number[0])), text))  # unless others differ, too
    yield _sum(body)


def reason(error: Exception) -> str:
    """Why a file cannot be used, as the end of a sentence."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error).removesuffix(".")


def once(named: Sequence[tuple[str, GroupRecord]], problems: list[str], unreadable: int) -> Stored:
    """Keep the first of several results of one trial, and name the others. Each record has the words for its place."""
    first: dict[str, tuple[str, GroupRecord]] = {}
    kept = []
    for where, record in named:
        trials = []
        for trial in record.trials:
            if trial.id in first:
                problems.append(differing(trial.id, first[trial.id], (where, record)))
            else:
                first[trial.id] = (where, record)
                trials.append(trial)
        if trials:
            kept.append(record if len(trials) == len(record.trials) else replace(record, trials=tuple(trials)))
    return Stored(tuple(kept), tuple(problems), unreadable)


def differing(id: str, first: tuple[str, GroupRecord], second: tuple[str, GroupRecord]) -> str:
    """A sentence for a trial that two records hold, each with the words for its place: how far they differ."""
    (at, taken), (where, other) = first, second
    kept, left_out = (next(t for t in record.trials if t.id == id) for record in (taken, other))
    twice = f"Trial {id[:12]} is in {at} and in {where}; the first is taken"
    if kept.outcome != left_out.outcome:
        return f"{twice}. They differ: {kept.outcome} and {left_out.outcome}."
    sizes, metric = kept.evaluations.keys() & left_out.evaluations.keys(), taken.task.metric
    gaps = [abs(share(kept.evaluations[n], metric) - share(left_out.evaluations[n], metric)) for n in sizes]
    if max(gaps, default=0.0) > TOLERANCE:
        return f"{twice}. They differ by up to {max(gaps):.3f}."
    return f"{twice}."
