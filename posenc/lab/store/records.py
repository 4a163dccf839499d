"""One file per finished group of trials: atomic, self-checksummed, versioned. A trial is done iff a record holds it.

A reader names every file that it cannot use and goes on without it, so that one damaged file costs one group, which
the next run of the same command computes again.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posenc.lab.store import disk

SCHEMA = 1
TOLERANCE = 0.01
"""Two records of one trial that differ by more than this, in any accuracy, are said to differ."""
_SHAPE = {"run": dict, "label": str, "family": str, "task": dict, "trials": list, "provenance": dict}
_TASK = {"label": str, "metric": str, "trained": list, "floors": dict}
_TRIAL = {"id": str, "knobs": dict, "steps": int, "outcome": str, "evaluations": dict}
KNOBS = {"seed": int, "lr": int | float}
"""What every trial's knobs hold, in records and in plans."""
_RATIOS = {"exact": ("exact", "rows"), "last": ("last", "rows")}  # as in posenc.lab.tasks.measure, which needs jax


@dataclass(frozen=True)
class Stored:
    """What a folder of records holds, in the order of file names, and a sentence for each file that is wrong."""

    records: tuple[dict, ...]
    problems: tuple[str, ...]
    unreadable: int = 0
    """How many records the problems leave out."""


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


def write_record(folder: Path, record: dict) -> Path:
    """Store the trials that one program run finished; returns the file. It replaces a record of the same trials."""
    sealed = _seal(record)
    name = digest([trial["id"] for trial in sealed["trials"]]) + ".json"
    path = disk.inside(folder, "records", name)
    if path.exists() and (newer := _newer(path.read_bytes())) is not None:
        raise ValueError(f"records/{name} has schema {newer}, this posenc writes {SCHEMA}; install the newer one.")
    return disk.write(path, _text(sealed))


def read_records(folder: Path) -> Stored:
    """All records of a run folder; a trial that two of them hold is taken from the one whose name sorts first."""
    files = sorted(p for p in disk.inside(folder, "records").glob("*") if not p.name.startswith("."))
    records, problems = [], []
    for path in files:
        where = f"records/{path.name}"
        try:
            if path.is_symlink():
                raise ValueError("it is a link, and a run folder holds plain files only")
            records.append((where, _unseal(json.loads(path.read_bytes()))))
        except (ValueError, TypeError, RecursionError, OSError) as error:
            problems.append(f"{where} is left out: {_reason(error)}.")
    return _once(records, problems)


def read_bundle(path: Path) -> tuple[Stored, dict]:
    """The records of one committed file, and the file itself: its name and the trials without a result."""
    try:
        whole = json.loads(path.read_bytes())
        if not isinstance(whole, dict) or not isinstance(whole.get("records"), list):
            raise ValueError("it has no list of records")
        _version(whole)
    except (ValueError, RecursionError, OSError) as error:
        raise ValueError(f"{str(path)!r} is no bundle of records: {_reason(error)}.") from None
    records, problems = [], []
    for number, record in enumerate(whole["records"]):
        try:
            records.append((f"record {number}", _unseal(record)))
        except (ValueError, TypeError, RecursionError) as error:
            problems.append(f"record {number} is left out: {_reason(error)}.")
    return _once(records, problems), whole


def write_bundle(path: Path, name: str, records: tuple[dict, ...], unfinished: list[dict]) -> Path:
    """One compact file, the same bytes for the same results: without host, times, or order of arrival."""
    kept = []
    for record in records:
        said = {k: v for k, v in record["provenance"].items() if k not in ("host", "ended", "seconds")}
        kept.append(_seal({**record, "provenance": said}))
    kept.sort(key=lambda record: digest([trial["id"] for trial in record["trials"]]))
    body = ",\n".join(canonical(record) for record in kept)
    head = f'{{"name":{canonical(name)},"schema":{SCHEMA},"unfinished":{canonical(unfinished)},"records":[\n'
    with disk.guarded(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    return disk.write(path, f"{head}{body}\n]}}\n".encode())


def value(evaluation: dict, metric: str) -> float:
    """The share that was right, by the task's metric; NaN where nothing was counted. More is better, always."""
    right, asked = counted(evaluation, metric)
    return right / asked if asked else math.nan


def counted(evaluation: dict, metric: str) -> tuple[int, int]:
    """How many were right, and of how many, by the task's metric."""
    part, whole = _RATIOS.get(metric, ("correct", "total" if "total" in evaluation else "scored"))
    return evaluation.get(part, 0), evaluation.get(whole) or 0


def _seal(record: dict) -> dict:
    body = plain({**{k: v for k, v in record.items() if k != "sha256"}, "schema": SCHEMA})
    _check(body)
    if not body["trials"]:
        raise ValueError("A record without trials was given; it holds at least one.")
    return {"schema": SCHEMA, "sha256": _sum(body), **{k: v for k, v in body.items() if k != "schema"}}


def _unseal(record: Any) -> dict:
    if not isinstance(record, dict):
        raise ValueError("it is JSON but no record")
    _version(record)
    if record.get("sha256") != _sum({k: v for k, v in record.items() if k != "sha256"}):
        raise ValueError("its checksum does not match its content, so it was damaged or edited")
    _check(record)
    return record


def _version(record: dict) -> None:
    schema = record.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise ValueError("it names no schema version")
    if schema > SCHEMA:
        raise ValueError(f"it has schema {schema}, this posenc reads up to {SCHEMA}; install the newer one")


def _newer(content: bytes) -> int | None:
    try:
        schema = json.loads(content)["schema"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return schema if isinstance(schema, int) and schema > SCHEMA else None


def _check(record: dict) -> None:
    _has(record, _SHAPE, "record")
    _has(record["task"], _TASK, "task")
    for trial in record["trials"]:
        _has(trial, _TRIAL, "trial")
        _has(trial["knobs"], KNOBS, "trial's knobs")
        if trial["outcome"] not in ("done", "diverged"):
            raise ValueError(f"the outcome {trial['outcome']!r} has no record; only 'done' and 'diverged' do")
        for key in ("evaluations", "validation"):  # older records have no validation
            _check_sums(trial.get(key, {}), key)
    if [type(n) for n in record["task"]["trained"]] != [int, int]:
        raise ValueError("a task needs 'trained' as two sizes")


def _has(thing: Any, shape: dict[str, Any], what: str) -> None:
    for key, kind in shape.items():
        if not fits(thing, key, kind):
            raise ValueError(f"a {what} needs {key!r} as {kind_name(kind)}")


def fits(thing: Any, key: str, kind: Any) -> bool:
    """Whether a dict holds a value of this type; True and False are no numbers."""
    return isinstance(thing, dict) and isinstance(thing.get(key), kind) and not isinstance(thing[key], bool)


def kind_name(kind: Any) -> str:
    """A type as a sentence names it."""
    return getattr(kind, "__name__", "number")


def _check_sums(found: Any, key: str) -> None:
    """Sizes and what was counted at each: "evaluations" on test examples, "validation" on others."""
    if not isinstance(found, dict) or not all(n.isdecimal() and isinstance(sums, dict) for n, sums in found.items()):
        raise ValueError(f"a trial needs {key!r} as sums by size")


def _sum(body: dict) -> str:
    return hashlib.sha256(canonical(body).encode()).hexdigest()


def _text(record: dict) -> bytes:
    return (json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n").encode()


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return "it is empty, cut short or no JSON"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)


def _once(named: list[tuple[str, dict]], problems: list[str]) -> Stored:
    """Keep the first of several results of one trial, and say so."""
    first: dict[str, tuple[str, dict, str]] = {}
    kept, unreadable = [], len(problems)
    for where, record in named:
        trials = []
        for trial in record["trials"]:
            if trial["id"] not in first:
                first[trial["id"]] = (where, trial, record["task"]["metric"])
                trials.append(trial)
            else:
                problems.append(_twice(trial, where, *first[trial["id"]]))
        if trials:
            kept.append({**record, "trials": trials})
    return Stored(tuple(kept), tuple(problems), unreadable)


def _twice(trial: dict, where: str, other: str, kept: dict, metric: str) -> str:
    said = f"Trial {trial['id'][:12]} is in {other} and in {where}; the first is taken"
    if trial["outcome"] != kept["outcome"]:
        return f"{said}. They differ: {kept['outcome']} and {trial['outcome']}."
    both = kept["evaluations"].keys() & trial["evaluations"].keys()
    gaps = [abs(value(kept["evaluations"][n], metric) - value(trial["evaluations"][n], metric)) for n in both]
    if max(gaps, default=0.0) > TOLERANCE:
        return f"{said}. They differ by up to {max(gaps):.3f}."
    return f"{said}."
