"""What a sweep found: `load("runs/mine")`, then `.rows()`. Reads run folders and committed bundles, without jax.

A row is one trial at one size. Settings that differ among runs of one scheme on one task become part of the scheme's
label, so that two models are never averaged as one.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from posenc.lab import disk, records, store

COLUMNS = (
    *("task", "scheme", "family", "trial", "seed", "lr", "steps", "outcome"),
    *("size", "trained", "metric", "value", "floor", "exact", "rows"),
)
_FREE = ("task", "scheme")
_KNOBS = ("weight_decay", "warmup", "clip")


@dataclass(frozen=True)
class Results:
    """Records, the trials that have none, and what was wrong with the files."""

    name: str
    records: tuple[dict, ...]
    unfinished: tuple[dict, ...] = ()
    """Planned trials without a result: their lines of the plan, with the `outcome` that is known."""
    problems: tuple[str, ...] = ()
    folder: Path | None = None

    def rows(self) -> list[dict[str, Any]]:
        """One dict per trial and size, in a fixed order; `value` is the share right by the task's metric.

        A diverged trial enters with the uniform guess as its value, as `outcome` says.
        """
        rows = [row for record in self.records for trial in record["trials"] for row in self._rows(record, trial)]
        return sorted(rows, key=lambda r: (r["task"], r["scheme"], r["lr"], r["seed"], r["size"], r["trial"]))

    def columns(self) -> dict[str, Any]:
        """The same as NumPy arrays, one per column."""
        import numpy as np

        rows = self.rows()
        return {name: np.array([row[name] for row in rows]) for name in COLUMNS}

    def only(self, **where: str | int | float | tuple | list | set) -> Results:
        """The results of some tasks, schemes or seeds: `results.only(scheme=("rope", "alibi"), task="copy")`."""
        unknown = sorted(set(where) - {"task", "scheme", "family", "seed", "lr"})
        if unknown:
            raise ValueError(f"Results cannot be chosen by {unknown[0]!r}; take task, scheme, family, seed or lr.")
        wanted = {k: set(v) if isinstance(v, tuple | list | set) else {v} for k, v in where.items()}
        kept = [{**r, "trials": [t for t in r["trials"] if _meets(wanted, _facts(r, t))]} for r in self.records]
        rest = [u for u in self.unfinished if _meets(wanted, _facts(u, u))]
        return Results(self.name, tuple(r for r in kept if r["trials"]), tuple(rest), self.problems, self.folder)

    def tasks(self) -> dict[str, dict]:
        """Task label to {"label", "metric", "trained", "floors"}, in order of label."""
        tasks: dict[str, dict] = {}
        for task in sorted((record["task"] for record in self.records), key=lambda task: task["label"]):
            before = tasks.get(task["label"], task)
            tasks[task["label"]] = {**before, "floors": {**task["floors"], **before["floors"]}}
        return tasks

    def trials(self) -> list[str]:
        """The ids of all trials with a result."""
        return sorted(trial["id"] for record in self.records for trial in record["trials"])

    def params(self, trial: str) -> Any:
        """The trained parameters of a trial, where they were kept; this reads through Orbax and imports jax."""
        if self.folder is None:
            raise ValueError(f"The bundle {self.name!r} holds no parameters; load a folder run with --keep.")
        from posenc.lab.params import restore

        return restore(self.folder, trial)

    def provenance(self) -> dict[str, list[str]]:
        """What the numbers come from: each of commit, libraries and devices, with all values that occur."""
        keys = ("posenc", "commit", "python", "jax", "flax", "device")
        said = {k: sorted({str(r["provenance"][k]) for r in self.records if r["provenance"].get(k)}) for k in keys}
        return {k: v for k, v in said.items() if v}

    def label(self, record: dict, trial: dict) -> str:
        """The scheme of a trial, with the settings in which it differs from others of that scheme on that task."""
        facts = _settings(record, trial)
        varied = [f"{k}={facts[k]}" for k in self._varying if k in facts]
        return f"{record['label']} ({', '.join(varied)})" if varied else record["label"]

    def _rows(self, record: dict, trial: dict) -> list[dict[str, Any]]:
        task, knobs = record["task"], trial["knobs"]
        low, high = task["trained"]
        head = {"task": task["label"], "scheme": self.label(record, trial), "family": record["family"]}
        head |= {"trial": trial["id"], "seed": knobs["seed"], "lr": knobs["lr"], "steps": trial["steps"]}
        head |= {"outcome": trial["outcome"], "metric": task["metric"]}
        rows = []
        for n in _sizes(record):
            found, floor = trial["evaluations"].get(str(n), {}), uniform(task, n)
            if not found and trial["outcome"] != "diverged":
                continue
            value = floor if trial["outcome"] == "diverged" else records.value(found, task["metric"])
            exact = records.value(found, "exact") if "exact" in found else math.nan
            counted = {"value": value, "floor": floor, "exact": exact, "rows": found.get("rows", 0)}
            rows.append({**head, "size": n, "trained": low <= n <= high, **counted})
        return rows

    @cached_property
    def _varying(self) -> tuple[str, ...]:
        seen: dict[tuple, set] = {}
        known = [(r, t, r["task"]["label"]) for r in self.records for t in r["trials"]]
        for record, trial, task in known + [(u, u, u["task"]) for u in self.unfinished]:
            for key, value in _settings(record, trial).items():
                seen.setdefault((key, task, record["label"]), set()).add(records.canonical(value))
        return tuple(sorted({key for (key, *_), values in seen.items() if len(values) > 1}))


def load(path: str | os.PathLike) -> Results:
    """The results of a run folder, its name, or a committed bundle. Files that cannot be used are in `.problems`.

    `load("experiments/records/length.json").rows()` gives one dict per trial and size.
    """
    where = disk.find(path)
    if where.is_file():
        stored, whole = records.read_bundle(where)
        rest = [store.check_line(line, f"{str(where)!r}, unfinished") for line in whole.get("unfinished") or ()]
        return Results(str(whole.get("name") or where.stem), stored.records, tuple(rest), stored.problems)
    stored = store.read_records(where)
    return Results(where.resolve().name, stored.records, tuple(store.unfinished(where)), stored.problems, where)


def floors(task: Mapping[str, Any]) -> dict[int, dict[str, float]]:
    """Size to the three floors, as the share right: those of a task that reports errors are turned round."""
    turn = (lambda f: 1 - f) if task["metric"] == "error" else (lambda f: f)
    known = {int(n): {k: float(v) for k, v in at.items() if v is not None} for n, at in task["floors"].items()}
    return {n: {k: turn(v) for k, v in known[n].items()} for n in sorted(known)}


def uniform(task: Mapping[str, Any], size: int) -> float:
    """What a guess among all answers gets right at this size: the value of a run that learned nothing."""
    return floors(task).get(size, {}).get("uniform", 0.0)


def _settings(record: dict, trial: dict) -> dict[str, Any]:
    knobs = {k: trial["knobs"][k] for k in _KNOBS if k in trial["knobs"]}
    return {**{k: v for k, v in record["run"].items() if k not in _FREE}, **knobs, "steps": trial["steps"]}


def _sizes(record: dict) -> list[int]:
    """Every size at which the record's task was measured, also for trials that diverged before they were."""
    return sorted(
        {int(n) for n in record["task"]["floors"]} | {int(n) for t in record["trials"] for n in t["evaluations"]}
    )


def _facts(record: dict, trial: dict) -> dict[str, Any]:
    task = record["task"]["label"] if isinstance(record["task"], dict) else record["task"]
    knobs = {"seed": trial["knobs"]["seed"], "lr": trial["knobs"]["lr"]}
    return {"task": task, "scheme": record["label"], "family": record["family"], **knobs}


def _meets(wanted: dict[str, set], facts: dict[str, Any]) -> bool:
    return all(facts[key] in values for key, values in wanted.items())
