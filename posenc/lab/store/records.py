"""One file per finished group of trials: atomic, self-checksummed, versioned. A trial is done iff a record holds it.

A reader names every file that it cannot use and goes on without it, so that one damaged file costs one group, which
the next run of the same command computes again.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from posenc.lab.store import disk
from posenc.lab.store.possible import check_record, planned
from posenc.lab.store.schema import Counts, GroupRecord, TrialRecord, UnfinishedTrial, read, written
from posenc.language.echo import echoed

SCHEMA = 1
TOLERANCE = 0.01
"""Two records of one trial that differ by more than this, in any accuracy, are said to differ."""
_RATIOS = {"exact": ("exact", "rows"), "last": ("last", "rows")}  # as in posenc.lab.tasks.measure, which needs jax


@dataclass(frozen=True)
class Stored:
    """What a folder of records holds, in the order of file names, and a sentence for each file that is wrong."""

    records: tuple[GroupRecord, ...]
    problems: tuple[str, ...]
    unreadable: int = 0
    """How many records the problems leave out."""


@dataclass(frozen=True)
class Bundle:
    """What a committed file holds: records, and the trials without a result."""

    name: str
    stored: Stored
    unfinished: tuple[UnfinishedTrial, ...]


def canonical(thing: Any) -> str:
    """The one JSON text of a value: keys sorted, no spaces, NaN and infinities as null."""
    return json.dumps(plain(thing), sort_keys=True, separators=(",", ":"), allow_nan=False)


def plain(thing: Any) -> Any:
    """The same value out of dicts, lists and JSON's own scalars; NumPy scalars and arrays become theirs."""
    if isinstance(thing, dict):
        return {str(key): plain(value) for key, value in thing.items()}
    if hasattr(thing, "tolist"):
        thing = thing.tolist()
    if isinstance(thing, list | tuple):
        return [plain(value) for value in thing]
    if isinstance(thing, float) and not math.isfinite(thing):
        return None
    return thing


def digest(ids: list[str]) -> str:
    """A name for a set of trials: 32 hexadecimal digits, whatever their order."""
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()[:32]


def write_record(folder: Path, record: GroupRecord) -> Path:
    """Store the trials that one program run finished; returns the file. It replaces a record of the same trials."""
    content, path = sealed(record), disk.inside(folder, "records", f"{digest(record.ids)}.json")
    if path.exists():
        _check_older(path)
    return disk.write(path, content)


def sealed(record: GroupRecord) -> bytes:
    """The content of a record's file: one line. Raises `ValueError` for what could not be read back."""
    return (json.dumps(_sealed(record), separators=(",", ":"), allow_nan=False) + "\n").encode()


def recorded(folder: Path) -> set[str]:
    """The names of the records: that of a group, where all its trials were finished together."""
    return {path.stem for path in disk.part(folder, "records") if path.suffix == ".json"}


def check_version(folder: Path) -> None:
    """Refuse a folder with records of a newer posenc, before anything is computed that could not be stored there."""
    for path in disk.part(folder, "records"):
        if path.is_file():
            _check_older(path)


def _check_older(path: Path) -> None:
    if (newer := _newer(disk.content(path))) is not None:
        which = f"records/{path.name} has schema {echoed(newer)}"
        raise ValueError(f"{which}, this posenc writes {SCHEMA}; install the newer one.")


def read_records(folder: Path) -> Stored:
    """All records of a run folder; a trial that two of them hold is taken from the one whose name sorts first."""
    records, problems = [], []
    for path in disk.part(folder, "records"):
        where = f"records/{path.name}"
        try:
            if path.is_symlink():
                raise ValueError("it is a link, and a run folder holds plain files only")
            records.append((where, _unsealed(_parsed(path))))
        except (ValueError, TypeError, RecursionError, OSError) as error:
            problems.append(f"{where} is left out: {_reason(error)}.")
    return _once(records, problems)


def recorded_ids(folder: Path, name: str) -> list[str]:
    """The trials of the record of this name; none where there is no such record, or a damaged one."""
    path = disk.inside(folder, "records", f"{name}.json")
    try:
        return _unsealed(_parsed(path)).ids
    except (ValueError, TypeError, RecursionError, OSError):  # it is computed again, as `read_records` says of it
        return []


def read_bundle(path: Path) -> Bundle:
    """One committed file. A record of it that cannot be used is named in `stored.problems`."""
    try:
        whole = _parsed(path)
        if not isinstance(whole, dict) or not isinstance(whole.get("records"), list):
            raise ValueError("it has no list of records")
        _version(whole)
    except (ValueError, RecursionError, OSError) as error:
        raise ValueError(f"{str(path)!r} is not a bundle of records: {_reason(error)}.") from None
    records, problems = [], []
    for number, content in enumerate(whole["records"]):
        try:
            records.append((f"record {number}", _unsealed(content)))
        except (ValueError, TypeError, RecursionError) as error:
            problems.append(f"record {number} is left out: {_reason(error)}.")
    rest = whole.get("unfinished") or []
    if not isinstance(rest, list):
        raise ValueError(f"{str(path)!r} is not a bundle of records: its 'unfinished' is not a list.")
    lines = ((one, f"unfinished trial {number} of {str(path)!r}") for number, one in enumerate(rest, 1))
    unfinished = tuple(planned(UnfinishedTrial, *line, "bundle the run again") for line in lines)
    return Bundle(str(whole.get("name") or path.stem), _once(records, problems), unfinished)


def write_bundle(
    path: Path, name: str, records: tuple[GroupRecord, ...], unfinished: Sequence[UnfinishedTrial]
) -> Path:
    """One compact file, the same bytes for the same results: without host, times, or order of arrival."""
    kept = []
    for record in sorted(records, key=lambda record: digest(record.ids)):
        lasting = {k: v for k, v in record.provenance.items() if k not in ("host", "ended", "seconds", "compiled")}
        kept.append(_sealed(replace(record, provenance=lasting)))
    body = ",\n".join(canonical(record) for record in kept)
    rest = canonical([written(trial) for trial in unfinished])
    head = f'{{"name":{canonical(name)},"schema":{SCHEMA},"unfinished":{rest},"records":[\n'
    with disk.guarded(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    return disk.write(path, f"{head}{body}\n]}}\n".encode())


def share(counts: Counts, metric: str) -> float:
    """The share that was right, by the task's metric; NaN where nothing was counted. More is better, always."""
    right, whole = counted(counts, metric)
    return right / whole if whole else math.nan


def counted(counts: Counts, metric: str) -> tuple[int, int]:
    """How many were right, and of how many, by the task's metric."""
    part, whole = _RATIOS.get(metric, ("correct", "total" if "total" in counts else "scored"))
    return counts.get(part, 0), counts.get(whole) or 0


def _sealed(record: GroupRecord) -> dict[str, Any]:
    """The content of a file, with its schema and checksum."""
    body = plain(written(record))
    check_record(read(GroupRecord, body))  # what could not be read back is not written
    if not record.trials:
        raise ValueError("A record holds at least one trial, and this one has none.")
    return {"schema": SCHEMA, "sha256": _sum(body | {"schema": SCHEMA}), **body}


def _unsealed(content: Any) -> GroupRecord:
    if not isinstance(content, dict):
        raise ValueError("it is JSON, but not a record")
    _version(content)
    if content.get("sha256") != _sum({k: v for k, v in content.items() if k != "sha256"}):
        raise ValueError("its checksum does not match its content, so it was damaged or edited")
    record = read(GroupRecord, {k: v for k, v in content.items() if k not in ("schema", "sha256")})
    check_record(record)
    return record


def _parsed(path: Path) -> Any:
    """The JSON of a plain file."""
    content = disk.content(path)
    try:
        return json.loads(content)
    except ValueError:
        raise ValueError("it is empty, cut short or not JSON") from None


def _version(record: dict) -> None:
    schema = record.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise ValueError("it names no schema version")
    if schema > SCHEMA:
        raise ValueError(f"it has schema {echoed(schema)}, this posenc reads up to {SCHEMA}; install the newer one")


def _newer(content: bytes) -> int | None:
    try:
        schema = json.loads(content)["schema"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return schema if isinstance(schema, int) and schema > SCHEMA else None


def _sum(body: dict) -> str:
    return hashlib.sha256(canonical(body).encode()).hexdigest()


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error).removesuffix(".")


def _once(named: list[tuple[str, GroupRecord]], problems: list[str]) -> Stored:
    """Keep the first of several results of one trial, and name the others."""
    first: dict[str, tuple[str, TrialRecord, str]] = {}
    kept, unreadable = [], len(problems)
    for where, record in named:
        trials = []
        for trial in record.trials:
            if trial.id in first:
                problems.append(_twice(trial, where, *first[trial.id]))
            else:
                first[trial.id] = (where, trial, record.task.metric)
                trials.append(trial)
        if trials:
            kept.append(replace(record, trials=tuple(trials)))
    return Stored(tuple(kept), tuple(problems), unreadable)


def _twice(trial: TrialRecord, where: str, other: str, kept: TrialRecord, metric: str) -> str:
    twice = f"Trial {trial.id[:12]} is in {other} and in {where}; the first is taken"
    if trial.outcome != kept.outcome:
        return f"{twice}. They differ: {kept.outcome} and {trial.outcome}."
    sizes = kept.evaluations.keys() & trial.evaluations.keys()
    gaps = [abs(share(kept.evaluations[n], metric) - share(trial.evaluations[n], metric)) for n in sizes]
    if max(gaps, default=0.0) > TOLERANCE:
        return f"{twice}. They differ by up to {max(gaps):.3f}."
    return f"{twice}."
