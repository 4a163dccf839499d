"""Curves along training, and by place in the text, which a mean over places hides. No jax.

Records hold the loss of training batches and no accuracy along the way. So steps are counted until the loss is below a
share of the loss of a uniform guess. By place there is accuracy, the loss, or its excess over an exact one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from posenc.lab.figures import exports
from posenc.lab.figures.across import panels
from posenc.lab.figures.captions import listed, metric_named
from posenc.lab.figures.panel_captions import coded, ending
from posenc.lab.figures.panels import Drawing, Panel
from posenc.lab.figures.rows import Dots, rows
from posenc.lab.metrics import LOSSES, NATS, PARTS
from posenc.lab.results.excess import excess, octaves, window_excess
from posenc.lab.results.floors import floors_by_place
from posenc.lab.results.rates import seed_values
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import at_chosen_rates, cells
from posenc.lab.store.schema import TaskRecord, TrialRecord

SHARE = 0.1
"""A loss is small below this share of that of a guess."""
SAID = "Records hold the loss of training batches, and no accuracy along training."
LEAST = 1e-3
"""Nats that are drawn at least: a log axis has no zero."""
WINDOWS = (16, 64)


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


def place_curve(results: Results) -> Drawing:
    """Draw the share right, or the loss, in each bin of positions of the longest texts, a panel per task and training
    range.

    Diverged runs are left out, since they have no hits. Raises `ValueError` for records without hits, or losses, by
    place.
    """
    return panels(results, place_panels(results), more=without_places(results))


def without_places(results: Results) -> str:
    """The tasks whose hits by place are not known, in a sentence; empty where there is none."""
    left = sorted({record.task.label for record in results.records} - {task for task, _ in _longest(results)})
    return f"No hits by position are known of {listed(left)}." if left else ""


def place_panels(results: Results) -> list[Panel]:
    """Its panels."""
    longest = _longest(results)
    if not longest:
        raise ValueError(
            f"The records of {results.name!r} hold no hits by position: older versions did not count them, and tasks of"
            " one answer token have them at one position; train again under a new --name, or use --figure length."
        )
    last: dict[tuple, TaskRecord] = {}

    def means(task: TaskRecord, trial: TrialRecord) -> list[tuple[float, float]]:
        size = longest.get(key := (task.label, task.trained))
        if size is None or size not in (trial.places or {}):
            return []
        last[key] = task
        return _means(task, size, trial.places[size])

    words, tasks, shown = results.words, results.tasks(), []
    for key, runs in sorted(runs_along(results, means).items()):
        task, size, share = key[0], longest[key], guess(tasks[key[0]])
        unit = LOSSES.get(metric := tasks[task].metric)
        floor = {"uniform": -math.log(share) / unit if unit else share} if share else {}
        floors = {x: floor for of in runs.values() for x in of} if floor else {}
        readers = floors_by_place(last[key], size) if last[key].metric in LOSSES else {}
        floors |= {x: floor | of for x, of in readers.items()}
        inside = (0, first - 1) if (first := last[key].first_beyond) else None
        title, what = f"{words.title(task)}, size {size}", metric_named(metric) if unit else "accuracy"
        fields = (f"{what} at this position", title, words.code(task), floors, inside)
        shown.append(Panel.of_runs(runs, "position in the text", *fields, log=False, falling=unit is not None))
    return shown


def _longest(results: Results) -> dict[tuple[str, tuple[int, int]], int]:
    """Task and training range to the size of the longest texts whose hits are known at several places."""
    longest = {}
    for record in results.records:
        if record.task.places and any(trial.places for trial in record.trials):
            size = max(record.task.places)
            if sum(map(bool, record.task.places[size]["scored"])) > 1:
                longest[record.task.label, record.task.trained] = size
    return longest


def _means(task: TaskRecord, size: int, places: Mapping[str, Any]) -> list[tuple[float, float]]:
    """The middle of each bin with scored tokens, and the share right in it of all rows, or the mean loss there."""
    width, scored = (task.places or {})[size]["width"], (task.places or {})[size]["scored"]
    unit = LOSSES.get(task.metric)
    if unit and NATS not in places:
        raise ValueError(
            f"The records of {task.label!r} hold no losses by position, which older versions did not count; leave"
            " --metric out, or train again under a new --name."
        )
    sums = [parts / PARTS / unit for parts in places[NATS]] if unit else places["right"]
    bins = enumerate(zip(sums, scored, strict=True))
    return [(k * width + (width - 1) / 2, total / of) for k, (total, of) in bins if of]


def excess_curve(results: Results, most: int = 15) -> Drawing:
    """Draw the excess in nats against the position, by octaves, a panel per task and training range. Lines of
    predictors that see the last 16 and 64 tokens are added. Diverged runs are left out.

    A scheme that uses its context falls with the position, or stays. One that stays on the line of a window may do no
    more than see it. Lines end where texts do, up to `most` of them in a panel.
    """
    return panels(results, excess_panels(results), most=most, more="Losses are above the exact least one.")


def excess_panels(results: Results) -> list[Panel]:
    """Its panels. Raises `ValueError` for records without exact losses."""
    floors: dict[tuple, dict[int, dict[str, float]]] = {}

    def above(task: TaskRecord, trial: TrialRecord) -> Iterator[tuple[int, float]]:
        for end, octave in octaves(task).items():
            if octave.size in (trial.places or {}):
                lost = window_excess(task, octave)
                windows = {f"window {w}": lost[w] for w in WINDOWS if lost.get(w, 0) >= LEAST}
                floors.setdefault((task.label, task.trained), {})[end] = windows
                yield end, max(excess(task, octave, trial.places[octave.size]), LEAST)

    by_task = runs_along(results, above)
    if not by_task:
        raise ValueError(
            f"The records of {results.name!r} hold no exact losses, which only tasks such as 'copies' have; use"
            " --figure length."
        )
    words, shown = results.words, []
    for key, lines in sorted(by_task.items()):
        ends = (min(floors[key]), key[1][1])
        head = ("position in the text, up to", "excess (nats)", words.title(key[0]), words.code(key[0]))
        shown.append(Panel.of_runs(lines, *head, floors[key], ends, log=True, falling=True))
    return shown
