"""The floors of a task, by any metric: what guesses get right, or lose, at each size. No jax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from posenc.lab.results.sizes import Rule, average
from posenc.lab.store.records import NATS, merit
from posenc.lab.store.schema import TaskRecord

FLOORS = ("uniform", "prior", "bag", "position")
"""What guesses get right: a uniform one, the best constant, the row's most frequent token, the best use of position."""


def floors(task: TaskRecord) -> dict[int, dict[str, float]]:
    """Size to the floors, as the share right: those of a task that reports errors are turned round."""
    turn = (lambda f: 1 - f) if task.metric == "error" else (lambda f: f)
    return {n: {k: turn(float(v)) for k, v in task.floors[n].items() if v is not None} for n in sorted(task.floors)}


def mean_floors(task: TaskRecord, sizes: Sequence[int], rule: Rule = "equal") -> dict[str, float]:
    """The floors that are known at all of some sizes, each as its mean over them."""
    at = [floors(task).get(n, {}) for n in sizes]
    names = [name for name in FLOORS if at and all(name in size_floors for size_floors in at)]
    return {name: average([size_floors[name] for size_floors in at], sizes, rule) for name in names}


def best_floor(task: TaskRecord, sizes: Sequence[int], rule: Rule = "equal") -> tuple[str, float] | None:
    """The floor that is best on average over some sizes, and that mean; of equals the simplest."""
    return max(mean_floors(task, sizes, rule).items(), key=lambda item: merit(task.metric, item[1]), default=None)


def uniform(task: TaskRecord, size: int) -> float:
    """What a guess among all answers gets right at this size: the value of a run that learned nothing."""
    return floors(task).get(size, {}).get("uniform", 0.0)


def floors_by(task: TaskRecord, metric: str) -> dict[int, dict[str, float]]:
    """Size to the floors under another metric than the task's, as the share right, as far as they are known."""
    own = floors(task)
    if task.metric == "accuracy" and metric in ("last", "beyond"):
        return own  # there is one answer token
    recorded_floors = {"last": task.floors_last, "beyond": task.floors_beyond}.get(metric)
    if recorded_floors is not None:
        return floors(replace(task, metric=metric, floors=recorded_floors))
    if metric == NATS:
        last = own if task.metric == "accuracy" else floors_by(task, "last")
        return {n: {"uniform": -math.log(f["uniform"])} if f.get("uniform") else {} for n, f in last.items()}
    guess = {n: {"uniform": f["uniform"]} for n, f in own.items() if "uniform" in f}
    tokens = metric in ("last", "beyond") and task.metric in ("token", "error")
    return guess if tokens else {n: {} for n in task.floors}
