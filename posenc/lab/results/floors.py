"""The floors of a task, by any metric: what guesses get right, or lose, at each size. No jax."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace

from posenc.lab import metrics
from posenc.lab.metrics import LOSSES, PARTS, merit
from posenc.lab.results.sizes import Rule, average
from posenc.lab.store.schema import Floors, TaskRecord

FLOORS = ("uniform", "prior", "bag", "position", "unigram")
"""Baselines. Shares have a uniform guess, the best constant, the row's most frequent token, and the best use of
position. Sources with exact losses have the unigram model."""
BAYES = "bayes"
"""The loss of the optimal predictor of such a source: a floor of losses, and no guess."""
DRAWN_WINDOWS = (4, 16, 64)
"""Windows, in tokens, of the predictors that figures by position show."""


KINDS = ("floors", "floors_last", "floors_beyond", "floors_accuracy")
"""The floors that a record may hold: by its task's metric, and by three others."""


def complete(tasks: Sequence[TaskRecord]) -> list[TaskRecord]:
    """Return tasks, each with the floors at its sizes that others of its label have and it lacks.

    Older records hold fewer, and floors belong to the task. Those by `beyond` are of positions beyond one training.
    """
    merged: dict[tuple, dict[int, dict[str, float]]] = {}
    for task, kind in itertools.product(tasks, KINDS):
        of_kind = merged.setdefault(_origin(task, kind), {})
        for n, at in (getattr(task, kind) or {}).items():
            of_kind[n] = _numbers(at) | of_kind.get(n, {})
    return [
        replace(task, **{kind: _completed(task, kind, merged[_origin(task, kind)]) for kind in KINDS}) for task in tasks
    ]


def _origin(task: TaskRecord, kind: str) -> tuple:
    """Return the facts that floors of a kind depend on."""
    metric = kind.removeprefix("floors_") if kind != "floors" else task.metric
    return task.label, kind, metric, task.first_beyond if metric == "beyond" else None


def _completed(task: TaskRecord, kind: str, others: Mapping[int, Mapping[str, float]]) -> Floors | None:
    """The floors of one kind at the sizes of a task, its own before others."""
    own = getattr(task, kind)
    return {n: others[n] | _numbers((own or {}).get(n, {})) for n in task.floors if n in others} or own


def _numbers(size_floors: Mapping[str, float | None]) -> dict[str, float]:
    """The floors of one size that are numbers."""
    return {name: float(value) for name, value in size_floors.items() if value is not None}


def floors(task: TaskRecord) -> dict[int, dict[str, float]]:
    """Return size to the floors, as the share right: for a task that reports errors, 1 minus the error."""
    return {n: _floors_at(task, n) for n in sorted(task.floors)}


def _floors_at(task: TaskRecord, size: int) -> dict[str, float]:
    """The floors of one size, if there are any."""
    turn = (lambda f: 1 - f) if task.metric == "error" else (lambda f: f)
    return {name: turn(value) for name, value in _numbers(task.floors.get(size, {})).items()}


def mean_floors(task: TaskRecord, sizes: Sequence[int], rule: Rule = "equal") -> dict[str, float]:
    """The floors that are known at all of some sizes, each as its mean over them."""
    at = [_floors_at(task, n) for n in sizes]
    names = [name for name in FLOORS if at and all(name in size_floors for size_floors in at)]
    return {name: average([size_floors[name] for size_floors in at], sizes, rule) for name in names}


def best_floor(task: TaskRecord, sizes: Sequence[int], rule: Rule = "equal") -> tuple[str, float] | None:
    """The floor that is best on average over some sizes, and that mean; of equals the simplest."""
    return max(mean_floors(task, sizes, rule).items(), key=lambda item: merit(task.metric, item[1]), default=None)


def highest(task: TaskRecord, sizes: Sequence[int]) -> float:
    """That mean alone; 0 where no floor is known."""
    return (best_floor(task, sizes) or ("", 0.0))[1]


def uniform(task: TaskRecord, size: int) -> float:
    """Return the share that a guess among all answers gets right at this size: the value of a run that learned
    nothing."""
    return _floors_at(task, size).get("uniform", 0.0)


def exact_losses(task: TaskRecord, size: int) -> dict[str, float]:
    """Return the losses of the unigram model and of the optimal predictor on the test examples of a size, in nats, if
    the record holds them."""
    bins = (task.places or {}).get(size, {})
    scored = sum(bins.get("scored", ()))
    return {name: sum(bins[name]) / scored / PARTS for name in ("unigram", BAYES) if name in bins and scored}


def floors_by(task: TaskRecord, metric: str) -> dict[int, dict[str, float]]:
    """Size to the floors by a metric, as the share right, as far as they are known."""
    own, same = floors(task), metrics.ratio(task.metric) == metrics.ratio(metric)
    if same and (task.metric == metric or metric not in LOSSES):
        return own
    if task.metric == "accuracy" and metric in ("last", "beyond"):
        return own  # there is one answer token
    recorded_floors = {
        "last": task.floors_last,
        "beyond": task.floors_beyond,
        "accuracy": task.floors_accuracy,
    }.get(metric)
    if recorded_floors is not None:
        return floors(replace(task, metric=metric, floors=recorded_floors))
    if (unit := LOSSES.get(metric)) is not None:
        last = own if task.metric == "accuracy" else floors_by(task, "last")
        guesses = {n: {"uniform": -math.log(f["uniform"]) / unit} if f.get("uniform") else {} for n, f in last.items()}
        exact = {n: {name: loss / unit for name, loss in exact_losses(task, n).items()} for n in guesses}
        return {n: guess | exact[n] | _readers(task, n, unit) for n, guess in guesses.items()}
    guess = {n: {"uniform": f["uniform"]} for n, f in own.items() if "uniform" in f}
    tokens = metric in ("last", "beyond") and task.metric in ("token", "error")
    return guess if tokens else {n: {} for n in task.floors}


def floors_by_place(task: TaskRecord, size: int) -> dict[float, dict[str, float]]:
    """Return the middle of each bin of positions of a size to the losses of predictors there, in the unit of the task's
    metric. Exact losses come from the record, a window's as "window 16"; yardsticks are added."""
    bins, unit = (task.places or {}).get(size, {}), LOSSES[task.metric]
    sums = {name: bins[name] for name in ("unigram", BAYES) if name in bins}
    windows = bins.get("windows", {})
    sums |= {f"window {w}": windows[str(w)] for w in DRAWN_WINDOWS if str(w) in windows}
    readers = (task.yardsticks or {}).get(size, {})
    middle = lambda k: k * bins["width"] + (bins["width"] - 1) / 2  # noqa: E731
    return {
        middle(k): {name: of[k] / many / PARTS / unit for name, of in sums.items()}
        | {name: of[k] / unit for name, of in readers.items()}
        for k, many in enumerate(bins.get("scored", ()))
        if many and (sums or readers)
    }


def _readers(task: TaskRecord, size: int, unit: float) -> dict[str, float]:
    """The mean loss of each yardstick at one size."""
    readers = (task.yardsticks or {}).get(size, {})
    scored = (task.places or {}).get(size, {}).get("scored", [])
    return {name: sum(map(operator.mul, losses, scored)) / sum(scored) / unit for name, losses in readers.items()}
