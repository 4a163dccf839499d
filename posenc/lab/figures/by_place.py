"""Accuracy, the loss, or its excess over an exact one, by place in the text, which a mean over places hides. No jax."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from posenc.lab.figures.across import panels
from posenc.lab.figures.captions import listed, metric_named
from posenc.lab.figures.curves import guess, runs_along
from posenc.lab.figures.panels import Drawing, Panel
from posenc.lab.metrics import LOSSES, NATS, PARTS
from posenc.lab.results.excess import excess, octaves, window_excess
from posenc.lab.results.floors import floors_by_place
from posenc.lab.results.results import Results
from posenc.lab.store.schema import TaskRecord, TrialRecord

LEAST = 1e-3
"""Nats that are drawn at least: a log axis has no zero."""
WINDOWS = (16, 64)


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
    return f"No hits by place are known of {listed(left)}." if left else ""


def place_panels(results: Results) -> list[Panel]:
    """Its panels."""
    longest = _longest(results)
    if not longest:
        raise ValueError(
            f"The records of {results.name!r} hold no hits by place: older versions did not count them, and tasks of"
            " one answer token have them at one place; train again under a new --name, or use --figure length."
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
        fields = (f"{what} at this place", title, words.code(task), floors, inside)
        shown.append(Panel.of_runs(runs, "place in the text", *fields, log=False, falling=unit is not None))
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
            f"The records of {task.label!r} hold no losses by place, which older versions did not count; leave --metric"
            " out, or train again under a new --name."
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
        head = ("place in the text, up to", "excess (nats)", words.title(key[0]), words.code(key[0]))
        shown.append(Panel.of_runs(lines, *head, floors[key], ends, log=True, falling=True))
    return shown
