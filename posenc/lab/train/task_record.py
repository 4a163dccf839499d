"""The task of a record: what it is called, the scores of guesses at it, and its scored places."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import jax
import numpy as np
from jaxtyping import Float, Int

from posenc.lab.store.schema import TaskRecord
from posenc.lab.tasks import Layout, Task, spec
from posenc.lab.tasks.floors import Table
from posenc.lab.tasks.measure import width
from posenc.lab.train.evaluation import examples_at
from posenc.lab.train.exact import SizeLosses
from posenc.lab.train.training import ResolvedRun


def task_record(
    resolved: ResolvedRun,
    sizes: Sequence[int],
    rows: int,
    floors: Mapping[str, Table],
    scored: Int[np.ndarray, "sizes 32"] | None,
    exact: Sequence[SizeLosses | None] = (),
) -> TaskRecord:
    """Return the task of a run with its floors by metric, evaluated on `rows` rows. Bins of positions have the number
    of scored tokens. It is None if no model was evaluated. `exact` are the losses of each size, if the task knows
    them."""
    task, run = resolved.task, resolved.run
    ordered = {metric: {n: table[n] for n in sizes if n in table} for metric, table in floors.items()}
    each = {} if scored is None else bin_counts(resolved, sizes, scored)
    bins = {n: {"width": width(task.tokens(n)), "scored": counts} for n, counts in each.items()}
    for n, losses in zip(sizes, exact, strict=False):
        bins[n] |= losses.bins if losses else {}
    return TaskRecord(
        label=spec(task),
        metric=task.metric,
        trained=(run.shortest, run.trained_to),
        floors=ordered[task.metric],
        floors_last=ordered.get("last"),
        floors_beyond=ordered.get("beyond"),
        floors_accuracy=ordered.get("accuracy") if task.metric == "exact" else None,
        places=bins or None,
        first_beyond=task.tokens(run.trained_to),
        read_by=read_by(task, len(ordered.get("beyond", ())) == len(sizes)),
        yardsticks=_yardsticks(task, tuple(sizes), rows) if each else None,
    )


def places_of(
    resolved: ResolvedRun, sizes: Sequence[int], counts: Mapping[str, Int[np.ndarray, "lanes sizes 32"]], lane: int
) -> dict[int, dict[str, list[int]]] | None:
    """Size to what a trial has in each bin of places; None where nothing was evaluated."""
    each = {name: bin_counts(resolved, sizes, counts[name][lane]) for name in ("right", "nats")}
    return {n: {name: bins[n] for name, bins in each.items()} for n in each["right"]} or None


@functools.lru_cache(maxsize=16)
def _yardsticks(task: Task, sizes: tuple[int, ...], rows: int) -> dict[int, dict[str, list[float]]] | None:
    """Size to the mean losses of the task's yardsticks on its test rows, in each bin of places; None if it has none."""
    if not task.texts:
        return None
    losses: dict[int, dict[str, list[float]]] = {}
    for n in sizes:
        tokens = task.tokens(n)
        each = task.yardsticks(jax.device_get(examples_at(task, rows, sizes, n)).tokens[:, :tokens])
        cuts = range(width(tokens), tokens, width(tokens))
        losses[n] = {name: [_mean(places) for places in np.split(loss, cuts)] for name, loss in each.items()}
    return losses if any(losses.values()) else None


def _mean(losses: Float[np.ndarray, " places"]) -> float:
    """Six digits of a mean; 0 of no places."""
    return float(f"{losses.mean():.6g}") if losses.size else 0.0


def read_by(task: Task, everywhere: bool) -> str | None:
    """Return the metric that results are read by, if it is not that of the task. For answers at every token it is
    `beyond`, if some positions beyond training are scored `everywhere`."""
    if task.read_by:
        return task.read_by
    return "beyond" if task.layout is Layout.TOKENS and task.metric == "token" and everywhere else None


def bin_counts(
    resolved: ResolvedRun, sizes: Sequence[int], counts: Int[np.ndarray, "sizes 32"]
) -> dict[int, list[int]]:
    """Size to the counts of those bins that its texts reach; one answer token stands at the place of its slot."""
    tokens = {n: resolved.task.tokens(n) for n in sizes}
    return {n: counts[i, : -(-tokens[n] // width(tokens[n]))].tolist() for i, n in enumerate(sizes)}
