"""Curves along training: the loss, and the steps until it is small. No jax.

Records hold the loss of training batches and no accuracy along the way. So steps are counted until the loss is below a
share of the loss of a uniform guess.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from posenc.lab.figures import exports
from posenc.lab.figures.across import panels
from posenc.lab.figures.panel_captions import coded, ending
from posenc.lab.figures.panels import Drawing, Panel
from posenc.lab.figures.rows import Dots, rows
from posenc.lab.metrics import LOSSES
from posenc.lab.results.rates import seed_values
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import at_chosen_rates, cells
from posenc.lab.store.schema import TaskRecord, TrialRecord

SHARE = 0.1
"""A loss is small below this share of that of a guess."""
SAID = "Records hold the loss of training batches, and no accuracy along training."


def curves(results: Results) -> Drawing:
    """The loss along training, one panel per task and training range."""
    return replace(panels(results, curve_panels(results), more=SAID), rows=exports.curves(results))


def curve_panels(results: Results) -> list[Panel]:
    """Its panels. Raises `ValueError` for records without losses along training."""
    by_task = runs_along(results, lambda _, trial: _curve(trial))
    _refuse(results, by_task)
    words = results.words
    return [
        Panel.of_runs(runs, "steps of training", "loss", words.title(task), words.code(task), log=False, falling=True)
        for (task, _), runs in sorted(by_task.items())
    ]


def steps(results: Results) -> Drawing:
    """The steps until the loss of each run is small, a row for each scheme, a column for each task."""
    most: dict[tuple, int] = {}

    def until_small(task: TaskRecord, trial: TrialRecord) -> Iterator[tuple[int, float]]:
        if curve := _curve(trial):
            key = task.label, task.trained
            most[key] = max(most.get(key, 0), curve[-1][0])
            yield 0, min((step for step, loss in curve if loss <= _small(task)), default=math.inf)

    by_task = runs_along(results, until_small)
    _refuse(results, by_task)
    words, names = results.words, results.words.lines(label for of in by_task.values() for label in of)
    order = {c.scheme: None for c in sorted(cells(results), key=lambda c: (c.family, c.scheme)) if c.scheme in names}
    columns = []
    for (task, trained), runs in sorted(by_task.items()):
        values = {names[label]: seed_values(of)[0] for label, of in runs.items()}
        columns.append(Dots(words.title(task), "steps", values, {}, (0, most[task, trained]), "never"))
    tasks = "; ".join(words.coded(task) for task, _ in sorted(by_task))
    sentence = (
        f"Steps until the loss of a training batch is at most {SHARE:g} of that of a guess among all answers: {tasks}."
        " Dots are runs, bars their medians; runs that never come there stand at the end."
    )
    text = "\n".join([sentence, f"{SAID} {coded(results, names)}".strip(), *ending(results)])
    return Drawing(rows([names[label] for label in order], columns), text, exports.curves(results))


def runs_along(
    results: Results, values: Callable[[TaskRecord, TrialRecord], Iterable[tuple[Any, float]]]
) -> dict[tuple[str, tuple[int, int]], dict[str, dict[Any, dict[tuple[float, int], float]]]]:
    """Return the runs at the reported rates: task and trained sizes to scheme to position along x to rate and seed to
    value. `values` gives the positions of a trial, each with its value."""
    by_task: dict[tuple[str, tuple[int, int]], dict] = {}
    for task, label, trial in at_chosen_rates(results):
        for x, value in values(task, trial):
            line = by_task.setdefault((task.label, task.trained), {}).setdefault(label, {})
            line.setdefault(x, {})[trial.knobs.lr, trial.knobs.seed] = value
    return by_task


def _curve(trial: TrialRecord) -> list[tuple[int, float]]:
    """Steps and the losses there; a loss that is not finite ends it."""
    kept = []
    for step, loss in zip((trial.curve or {}).get("step", ()), (trial.curve or {}).get("loss", ()), strict=True):
        if loss is None or not math.isfinite(loss) or loss <= 0:
            break
        kept.append((step, loss))
    return kept


def guess(task: TaskRecord) -> float | None:
    """The share that a guess among all answers gets right at one token; None where older records do not know it."""
    floors, metric = (task.floors_last, "last") if task.floors_last else (task.floors, task.metric)
    shares = [at["uniform"] for at in floors.values() if at.get("uniform") is not None]
    if not shares or metric == "exact":
        return None
    if (unit := LOSSES.get(metric)) is not None:
        return math.exp(-min(shares) * unit)
    return 1 - min(shares) if metric == "error" else max(shares)


def _small(task: TaskRecord) -> float:
    """The loss, in nats, below which it is small."""
    share = guess(task)
    if not share:
        raise ValueError(
            f"The records of {task.label!r} hold no guess at one token, so no loss is known to be small; use --figure"
            " curves."
        )
    return -SHARE * math.log(share)


def _refuse(results: Results, by_task: object) -> None:
    if not by_task:
        raise ValueError(
            f"The records of {results.name!r} hold no loss along training; train again under a new --name."
        )
