"""What a sweep found: `load("runs/mine")`, then `.rows()`. Reads run folders and committed bundles, without jax.

A row is one trial at one size. Settings that differ among runs of one scheme on one task become part of the scheme's
label, so that two models are never averaged as one.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from posenc.lab.models import kinds
from posenc.lab.results.quadrature import Rule, average
from posenc.lab.spec.run import Run
from posenc.lab.store import disk, records
from posenc.lab.store import folder as store

COLUMNS = (
    *("task", "scheme", "family", "trial", "seed", "lr", "steps", "outcome"),
    *("size", "trained", "trained_from", "trained_to", "metric", "value", "floor", "exact", "rows"),
)
CHOICES = ("task", "scheme", "family", "seed", "lr")
"""What results can be chosen by."""
FLOORS = ("uniform", "prior", "position")
"""What a uniform guess, the best constant, and the best function of position alone get right."""
_FREE = ("task", "scheme")
_KNOBS = ("weight_decay", "warmup", "clip")
_LATER = {f.name: f.default for f in fields(Run) if f.metadata.get("later")}
"""What records say nothing of while it is at its default."""


@dataclass(frozen=True)
class Results:
    """Records, the trials that have none, and what was wrong with the files."""

    name: str
    records: tuple[dict, ...]
    unfinished: tuple[dict, ...] = ()
    """Planned trials without a result: their lines of the plan, with the `outcome` that is known."""
    problems: tuple[str, ...] = ()
    folder: Path | None = None
    unreadable: int = 0
    """How many records the problems leave out."""
    varied: tuple[str, ...] | None = None
    """The settings in labels; found in the records unless given, as by `only`, which keeps labels as they were."""

    def rows(self) -> list[dict[str, Any]]:
        """One dict per trial and size, in a fixed order; `value` is the share right by the task's metric.

        A diverged trial enters with the uniform guess as its value, as `outcome` says.
        """
        rows = [row for record in self.records for trial in record["trials"] for row in self._rows(record, trial)]
        return sorted(rows, key=lambda r: (r["task"], r["scheme"], r["lr"], r["seed"], r["size"], r["trial"]))

    def only(self, **where: str | int | float | tuple | list | set) -> Results:
        """The results of some tasks, schemes or seeds: `results.only(scheme=("rope", "alibi"), task="copy")`.

        A scheme is chosen by its label in tables, or by its text alone: "rope" is also every "rope (width=32)".
        """
        unknown = sorted(set(where) - set(CHOICES))
        if unknown:
            raise ValueError(f"Results cannot be chosen by {unknown[0]!r}; take {', '.join(CHOICES)}.")
        wanted = {k: set(v) if isinstance(v, tuple | list | set) else {v} for k, v in where.items()}
        kept = [{**r, "trials": [t for t in r["trials"] if _meets(wanted, self._facts(r, t))]} for r in self.records]
        rest = [u for u in self.unfinished if _meets(wanted, self._facts(u, u))]
        records = tuple(r for r in kept if r["trials"])
        return replace(self, records=records, unfinished=tuple(rest), varied=self._varying)

    def choices(self, name: str) -> list[Any]:
        """The values of a column by which results can be chosen, of unfinished trials too."""
        known = [(r, t) for r in self.records for t in r["trials"]] + [(u, u) for u in self.unfinished]
        return sorted(dict.fromkeys(value for r, t in known for value in self._facts(r, t)[name]))

    def tasks(self) -> dict[str, dict]:
        """Task label to {"label", "metric", "floors"}, in order of label. Training ranges are those of rows."""
        tasks: dict[str, dict] = {}
        for task in sorted((record["task"] for record in self.records), key=lambda task: task["label"]):
            before = tasks.get(task["label"], task)
            both = {**task["floors"], **before["floors"]}
            tasks[task["label"]] = {"label": before["label"], "metric": before["metric"], "floors": both}
        return tasks

    def validated(self) -> dict[str, float]:
        """Trial to its mean on validation examples; diverged trials and those of older records have none."""
        found = {}
        for record in self.records:
            for trial in record["trials"]:
                sums = trial.get("validation", {}).values() if trial["outcome"] == "done" else ()
                shares = [records.value(s, record["task"]["metric"]) for s in sums]
                if counted := [share for share in shares if math.isfinite(share)]:
                    found[trial["id"]] = sum(counted) / len(counted)
        return found

    def trials(self) -> list[str]:
        """The ids of all trials with a result."""
        return sorted(trial["id"] for record in self.records for trial in record["trials"])

    def params(self, trial: str) -> Any:
        """The trained parameters of a trial, where they were kept; this reads through Orbax and imports jax."""
        if self.folder is None:
            raise ValueError(f"The bundle {self.name!r} holds no parameters; load a folder run with --keep.")
        from posenc.lab.store.parameters import restore

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
        head |= {"outcome": trial["outcome"], "metric": task["metric"], "trained_from": low, "trained_to": high}
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

    def _facts(self, record: dict, trial: dict) -> dict[str, tuple]:
        """What a trial can be chosen by; its scheme by its text and by its label."""
        task = record["task"]["label"] if isinstance(record["task"], dict) else record["task"]
        schemes = tuple(dict.fromkeys((record["label"], self.label(record, trial))))
        knobs = {"seed": (trial["knobs"]["seed"],), "lr": (trial["knobs"]["lr"],)}
        return {"task": (task,), "scheme": schemes, "family": (record["family"],), **knobs}

    @cached_property
    def _varying(self) -> tuple[str, ...]:
        if self.varied is not None:
            return self.varied
        seen: dict[tuple, set] = {}
        known = [(r, t, r["task"]["label"]) for r in self.records for t in r["trials"]]
        for record, trial, task in known + [(u, u, u["task"]) for u in self.unfinished]:
            for key, value in _settings(record, trial).items():
                if value is not None:  # what a model has no use for tells it from no other
                    seen.setdefault((key, task, record["label"]), set()).add(records.canonical(value))
        return tuple(sorted({key for (key, *_), values in seen.items() if len(values) > 1}))


def load(path: str | os.PathLike) -> Results:
    """The results of a run folder, its name, or a committed bundle. Files that cannot be used are in `.problems`.

    `load("experiments/records/length.json").rows()` gives one dict per trial and size.
    """
    where = disk.find(path)
    if where.is_file():
        stored, whole = records.read_bundle(where)
        name, rest = str(whole.get("name") or where.stem), whole.get("unfinished") or []
        if not isinstance(rest, list):
            raise ValueError(f"{str(where)!r} is no bundle of records: its 'unfinished' is no list.")
        for number, line in enumerate(rest, 1):
            which = f"unfinished trial {number} of {str(where)!r}"
            if not records.fits(store.check_line(line, which), "outcome", str):
                raise ValueError(f"{which} needs 'outcome' as str; bundle the run again.")
        return Results(name, stored.records, tuple(rest), stored.problems, None, stored.unreadable)
    stored, rest = store.read_records(where), store.unfinished(where)
    return Results(where.resolve().name, stored.records, tuple(rest), stored.problems, where, stored.unreadable)


def floors(task: Mapping[str, Any]) -> dict[int, dict[str, float]]:
    """Size to the three floors, as the share right: those of a task that reports errors are turned round."""
    turn = (lambda f: 1 - f) if task["metric"] == "error" else (lambda f: f)
    known = {int(n): {k: float(v) for k, v in at.items() if v is not None} for n, at in task["floors"].items()}
    return {n: {k: turn(v) for k, v in known[n].items()} for n in sorted(known)}


def mean_floors(task: Mapping[str, Any], sizes: Sequence[int], rule: Rule = "equal") -> dict[str, float]:
    """The floors that are known at all of some sizes, each as its mean over them."""
    at = [floors(task).get(n, {}) for n in sizes]
    names = [name for name in FLOORS if at and all(name in known for known in at)]
    return {name: average([known[name] for known in at], sizes, rule) for name in names}


def best_floor(task: Mapping[str, Any], sizes: Sequence[int], rule: Rule = "equal") -> tuple[str, float] | None:
    """The floor that is highest on average over some sizes, and that mean; of equals the simplest."""
    return max(mean_floors(task, sizes, rule).items(), key=lambda item: item[1], default=None)


def uniform(task: Mapping[str, Any], size: int) -> float:
    """What a guess among all answers gets right at this size: the value of a run that learned nothing."""
    return floors(task).get(size, {}).get("uniform", 0.0)


def _settings(record: dict, trial: dict) -> dict[str, Any]:
    knobs = {k: trial["knobs"][k] for k in _KNOBS if k in trial["knobs"]}
    run = {k: v for k, v in record["run"].items() if k not in _FREE}
    run |= {"model": _shortest(run["model"])} if "model" in run else {}
    parts = {f"revision of {part}": n for part, n in run.pop("revisions", {}).items()}  # which there are, others say
    return {**_LATER, **run, **parts, **knobs, "steps": trial["steps"]}


@cache
def _shortest(model: str) -> str:
    """A model's text without its defaults; one that is not installed here keeps what was written of it."""
    name = model.partition("(")[0]
    return kinds.spec(kinds.parse(model)) if name in kinds.MODELS.names() else model


def _sizes(record: dict) -> list[int]:
    """Every size at which the record's task was measured, also for trials that diverged before they were."""
    return sorted(
        {int(n) for n in record["task"]["floors"]} | {int(n) for t in record["trials"] for n in t["evaluations"]}
    )


def _meets(wanted: dict[str, set], facts: dict[str, tuple]) -> bool:
    return all(values & set(facts[key]) for key, values in wanted.items())
