"""Figures of stored results by size: every run is drawn, the median thick, the spread named by the caption.

Every panel of a length curve marks the trained sizes and draws the floors of its task. These are the accuracy of a
uniform guess, of the best constant, of the row's most frequent token, and of the best function of position. No jax;
matplotlib is imported by the functions that draw.

Errors are on a log axis, for schemes that are nearly always right. It has no zero, so runs without an error are drawn
below the line of one error in all scored answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from posenc.lab import metrics
from posenc.lab.figures.across import panels
from posenc.lab.figures.captions import metric_named
from posenc.lab.figures.files import save as save
from posenc.lab.figures.floor_lines import ONE
from posenc.lab.figures.panel_captions import foreign
from posenc.lab.figures.panels import Drawing, Panel
from posenc.lab.figures.style import plain
from posenc.lab.metrics import LOSSES
from posenc.lab.results.floors import floors
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import TableCell, by_range, cells, summary
from posenc.lab.results.words import Words
from posenc.lab.store.schema import TaskRecord

QUARTER = 0.25
"""The height of no error, as a share of the rate of one error, so that a median can lie between the two."""
ALIKE = 0.05
"""The largest distance of two medians at a size whose lines count as equal."""


def length(
    results: Results,
    largest: int | None = None,
    *,
    differing: bool = False,
    each: bool = False,
    ends: Mapping[str, tuple[float, float]] | None = None,
) -> Drawing:
    """Accuracy against size, one panel per task and training range, one line per scheme.

    Sizes above `largest` are left out, and with `differing` those at which all lines are alike. With `each`, every run
    is a line. `ends` are those of the axis of some tasks.
    """
    task_panels = length_panels(results, largest, differing=differing, each=each, ends=ends)
    return panels(results, task_panels, claimed=not any(panel.falling for panel in task_panels))


def length_panels(
    results: Results,
    largest: int | None = None,
    *,
    differing: bool = False,
    each: bool = False,
    ends: Mapping[str, tuple[float, float]] | None = None,
) -> list[Panel]:
    """Its panels."""
    table_cells, tasks = shown(results), results.tasks()
    task_panels = []
    for (task, _), group in sorted(by_range(table_cells).items(), key=lambda item: _order(results, item[0])):
        panel = size_panel(results, tasks[task], group, _sizes(group, largest, differing))
        task_panels.append(replace(panel, each=each, ends=(ends or {}).get(task, (0.0, 1.0))))
    return task_panels


def _sizes(group: list[TableCell], largest: int | None, differing: bool) -> list[int]:
    """The sizes that are drawn; of those at which lines differ, also the neighbour on either side."""
    sizes = [n for n in sorted({n for c in group for n in c.values}) if largest is None or n <= largest]
    medians = {n: [summary(c.values[n]).median for c in group if n in c.values] for n in sizes}
    apart = [k for k, n in enumerate(sizes) if max(medians[n]) - min(medians[n]) > ALIKE]
    return sizes[max(apart[0] - 1, 0) : apart[-1] + 2] if differing and apart else sizes


def size_panel(results: Results, task: TaskRecord, group: list[TableCell], kept: list[int]) -> Panel:
    """Accuracy, or the loss, against size for some schemes on one task."""
    points = {c.scheme: {n: c.values[n] for n in kept if n in c.values} for c in group}
    seeds = {c.scheme: {n: c.seeds[n] for n in points[c.scheme]} for c in group}
    size_floors = {n: at for n, at in floors(task).items() if n in kept}
    words, up = results.words, metric_named(task.metric)
    title, code = words.title(task.label), words.code(task.label)
    head = (words.unit(task.label), up, title, code, size_floors, group[0].trained)
    return Panel(points, *head, falling=task.metric in LOSSES, seeds=seeds)


def extrapolates(results: Results) -> bool:
    """Tell whether any size beyond a training range was measured."""
    return any(c.beyond for c in cells(results))


def shown(results: Results) -> tuple[TableCell, ...]:
    """The cells with a finished run. Raises `ValueError` if there is none."""
    table_cells = tuple(c for c in cells(results) if c.n)
    if not table_cells:
        raise ValueError(f"{results.name!r} has no finished trial to draw; run it first, or see `posenc status`.")
    return table_cells


def _order(results: Results, key: tuple[str, tuple[int, int]]) -> tuple:
    """Tasks in the order in which the experiment gives their titles, then by their texts."""
    titles = list(results.words.titles)
    return (titles.index(key[0]) if key[0] in titles else len(titles), key)


def error_curve(results: Results) -> Drawing:
    """Draw the error rate against size, one panel per task and training range, one line per scheme."""
    charts, names = [], results.words.lines(cell.scheme for cell in shown(results))
    sentences = ["Error rates are on a log axis; runs without an error stand at a quarter of the rate of one error."]
    for (task, _), group in sorted(by_range(shown(results)).items()):
        totals = scored(results, task)
        if not any(totals.values()):
            raise ValueError(
                f"Every trial of {task!r} diverged, so there is no error rate to draw; use --figure length."
            )
        charts.append(_error_panel(results, group, totals))
        sentences.append(_error_sentence(group, totals, names))
    return panels(results, charts, more=" ".join(sentences))


def scored(results: Results, task: str) -> dict[int, int]:
    """Return size to the number of answers scored in the test set, which all runs share."""
    totals: dict[int, int] = {}
    for record in results.records:
        for trial in record.trials if record.task.label == task else ():
            for n, counts in trial.evaluations.items():
                totals[n] = max(totals.get(n, 0), metrics.right_and_total(counts, record.task.metric)[1])
    return totals


def wrong(cell: TableCell, totals: Mapping[int, int], size: int) -> tuple[int, int]:
    """Return the wrong answers of all runs together at a size, and the number scored."""
    return sum(round((1 - v) * totals[size]) for v in cell.values[size]), totals[size] * len(cell.values[size])


def _error_panel(results: Results, group: list[TableCell], totals: Mapping[int, int]) -> Panel:
    at = [n for n in sorted({n for cell in group for n in cell.values}) if totals.get(n)]
    least = QUARTER / max(totals[n] for n in at)
    points = {c.scheme: {n: [max(1 - v, least) for v in c.values[n]] for n in at if n in c.values} for c in group}
    shares = size_panel(results, results.tasks()[group[0].task], group, at)
    guesses = shares.floors or {}
    lines = {n: {name: 1 - share for name, share in guesses.get(n, {}).items()} | {ONE: 1 / totals[n]} for n in at}
    return replace(shares, points=points, up=shares.up.replace("accuracy", "error rate"), floors=lines, falling=True)


def _error_sentence(group: list[TableCell], totals: Mapping[int, int], names: Mapping[str, str]) -> str:
    """The errors of each scheme at the largest size trained on."""
    inside, measured = [n for c in group for n in c.inside], [n for c in group for n in c.values]
    n = max(inside, default=min(measured))
    here = sorted((c for c in group if n in c.values), key=lambda c: (wrong(c, totals, n), c.scheme))
    counts = ["{} {:,} of {:,}".format(plain(names[c.scheme]), *wrong(c, totals, n)) for c in here]
    return f"Errors of all runs together at {n}: {', '.join(counts)}."


def drawing(experiment: Any, results: Results) -> tuple[Drawing, Results]:
    """The figure of an experiment, with a caption of its axes where it gives none, and the results that it shows."""
    results = worded(experiment, results)
    if experiment.figure is None:
        return length(results), results
    made = experiment.figure(results)
    return (made if isinstance(made, Drawing) else Drawing(made, foreign(made, results))), results


def worded(experiment: Any, results: Results, metric: str | None = None) -> Results:
    """Results by a metric, or else by that which an experiment shows, with its words."""
    return replace(results.shown(metric or experiment.metric), words=Words(**experiment.words))
