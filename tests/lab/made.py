"""Made-up sweeps with known numbers, for tests of what stores, counts and draws results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path

from posenc.lab.results.results import Results
from posenc.lab.store import folder as store
from posenc.lab.store import logs, records
from posenc.lab.store.schema import GroupRecord, PlannedTrial, UnfinishedTrial, read, written

SIZES = (8, 16, 24, 32)
TRAINED = (4, 16)
FLOORS = {"uniform": 0.1, "prior": 0.15, "position": 0.2}


def trial_id(*facts) -> str:
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def sums(curve: dict[int, float], rows=100) -> dict[str, dict]:
    """What was counted for these accuracies at these sizes, to a thousandth."""
    return {
        str(n): {
            "correct": round(1000 * a),
            "scored": 1000,
            "exact": round(rows * a),
            "rows": rows,
            "last": round(rows * a),
        }
        for n, a in curve.items()
    }


def trial(
    label: str,
    task: str,
    seed: int,
    curve: dict[int, float],
    lr=1e-3,
    outcome="done",
    rows=100,
    validation=None,
    **more,
) -> dict:
    """One trial with these accuracies; on validation examples the same at sizes trained on, unless given."""
    if validation is None:
        validation = {n: a for n, a in curve.items() if TRAINED[0] <= n <= TRAINED[1]}
    knobs = {"seed": seed, "lr": lr, "weight_decay": 0.0, "warmup": 0.1, "clip": 1.0}
    return {
        **{"id": trial_id(label, task, seed, lr), "knobs": knobs, "steps": 10, "outcome": outcome},
        **{"diverged_at": 3 if outcome == "diverged" else None, "evaluations": sums(curve, rows)},
        "validation": sums(validation, rows),
        "curve": {"step": [5, 10], "loss": [1.0, 0.5]},
        **more,
    }


def record(label: str, family: str, task: str, trials: list[dict], sizes=SIZES, trained=TRAINED, **run) -> dict:
    about = {"label": task, "metric": "token", "trained": list(trained), "floors": {str(n): FLOORS for n in sizes}}
    said = {"posenc": "0.1.0", "commit": "abc1234", "python": "3.11", "jax": "0.10.2", "flax": "0.12.8"}
    said |= {"device": "cpu", "lanes": "map", "host": "here", "ended": "2026-01-01T00:00:00", "seconds": {"train": 1.5}}
    settings = {"task": task, "scheme": label, "width": 64, "shortest": trained[0], "length": trained[1], **run}
    return {"run": settings, "label": label, "family": family, "task": about, "trials": trials, "provenance": said}


def plan(rec: dict, group: str) -> list[dict]:
    """The lines that planned a record."""
    head = {"group": group, "run": rec["run"], "sizes": list(SIZES), "rows": 100, "segment": 10}
    head |= {"label": rec["label"], "family": rec["family"], "task": rec["task"]["label"]}
    return [{**head, "id": t["id"], "knobs": t["knobs"], "steps": t["steps"]} for t in rec["trials"]]


def rope(seeds=(0, 1, 2), task="copy", label="rope", family="rotary", drop=0.1) -> dict:
    """Perfect as far as trained, then falling; each seed a little lower than the one before."""
    curves = [{8: 1.0, 16: 1.0, 24: max(0.9 - drop - s / 100, 0.0), 32: max(0.8 - drop - s / 100, 0.0)} for s in seeds]
    return record(label, family, task, [trial(label, task, s, c) for s, c in zip(seeds, curves, strict=True)])


def ranged(*ranges: tuple[int, int], seeds=(0, 1, 2), task="copy", label="rope", family="rotary") -> list[dict]:
    """One scheme trained on several ranges of sizes, perfect at all that are trained on and at 0.5 beyond."""
    made = []
    for low, high in ranges:
        trials = [trial(label, task, s, {n: 1.0 if n <= high else 0.5 for n in SIZES}) for s in seeds]
        trials = [{**t, "id": trial_id(t["id"], low, high)} for t in trials]
        made.append(record(label, family, task, trials, trained=(low, high)))
    return made


def typed(rec: dict) -> GroupRecord:
    """A record as the laboratory holds it; above are the contents of files."""
    return read(GroupRecord, records.plain(rec))


def results(name: str, recs: Iterable[dict], unfinished: Iterable[dict] = ()) -> Results:
    """Results that hold these."""
    return Results(name, tuple(map(typed, recs)), tuple(read(UnfinishedTrial, line) for line in unfinished))


def write_record(folder: Path, rec: dict) -> Path:
    return store.write_record(folder, typed(rec))


def write_plan(folder: Path, lines: list[dict]) -> list[PlannedTrial]:
    return store.write_plan(folder, [read(PlannedTrial, line) for line in lines])


def log_of(folder: Path) -> Path:
    """The log of a run folder to which one process added records."""
    (path,) = (folder / "records").glob("*.jsonl")
    return path


def recorded(folder: Path) -> dict[str, str]:
    """The names of the records in the logs, each with the checksum of its line, which holds when it was written."""
    read = (logs.read_log(path, contents=False) for path in sorted((folder / "records").glob("*.jsonl")))
    return {entry.name: entry.sum.decode() for log in read for entry, _ in log if isinstance(entry, logs.Entry)}


def edit(folder: Path, change: Callable[[dict], object], label: str = "rope") -> int:
    """Change a record, and make its checksum right again; returns the number of its line."""
    path = log_of(folder)
    lines = path.read_bytes().splitlines(keepends=True)
    (at,) = (n for n, line in enumerate(lines) if f'"label":"{label}"'.encode() in line)
    content = json.loads(logs.unseal(lines[at])[0])
    name = content.pop("name")
    change(content)
    lines[at] = logs.seal(name, json.dumps(content, separators=(",", ":")).encode()) + b"\n"
    path.write_bytes(b"".join(lines))
    return at + 1


def replanned(folder: Path, change: Callable[[dict], dict]) -> None:
    """Write the plan of a folder again, what its trials share changed by hand."""
    lines = [change(json.loads(store.canonical(written(line)))) for line in store.read_plan(folder)]
    own, shared = [], {}
    for line in lines:
        text = store.canonical({k: v for k, v in line.items() if k not in ("id", "group", "knobs")})
        shared[store.checksum(text)] = text
        own.append(json.dumps({k: line[k] for k in ("id", "group", "knobs")} | {"run": store.checksum(text)}))
    runs = [f'{{"sha256":"{name}","shared":{text}}}' for name, text in shared.items()]
    (folder / "plan.jsonl").write_text("\n".join([*runs, *own, ""]))


def filled(name: str, recs: list[dict]) -> Path:
    """A run folder in which these were planned and finished."""
    folder = store.create(name)
    for number, rec in enumerate(recs):
        write_plan(folder, plan(rec, f"g{number}"))
        write_record(folder, rec)
    return folder


def unexamined(experiment):
    """What `posenc.lab.run.plan.examined` returns, without a look at the runs."""
    from posenc.lab.run.plan import Examined

    return Examined(experiment, [], [True] * len(experiment.runs), [])
