"""Accuracy of trained models in groups of examples, as text and as figures: the median over runs, with their number.

One grouping is a line over its values, two are a heat map. Rows are those of `posenc.lab.reuse.evaluate.groups`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from posenc.lab.figures import style
from posenc.lab.figures.exports import harmless
from posenc.lab.figures.panels import line, places, shape
from posenc.lab.results.rates import seed_values
from posenc.lab.results.results import GroupedRow
from posenc.lab.results.statistics import summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = list[GroupedRow]
Groups = dict[tuple[int, ...], list[float]]


def as_text(rows: Rows, by: Sequence[str], left_out: int) -> str:
    """A block for each scheme on each task: a grid for two groupings, else a line for each group."""
    parts = []
    for (task, scheme), groups in _cells(rows, by).items():
        lines = _grid(groups, by) if len(by) == 2 else _list(groups, by)
        parts.append("\n".join([f"{style.plain(scheme)} · {style.plain(task)}", *lines]))
    return "\n\n".join([*parts, note(rows, left_out)])


def note(rows: Rows, left_out: int) -> str:
    """The note under the text: number of runs, metric, diverged trials, floors."""
    seeds: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        seeds.setdefault((row.task, row.scheme), set()).add(row.seed)
    runs = sorted({len(each) for each in seeds.values()})
    metric = ", ".join(sorted({"accuracy" if r.metric == "error" else r.metric for r in rows}))
    many = f"{runs[0]} to {runs[-1]}" if len(runs) > 1 else f"{runs[0]}"
    ties = len({(r.task, r.scheme, r.lr) for r in rows}) > len(seeds)
    rate = "learning rates that tie on validation examples" if ties else "learning rate chosen on validation examples"
    return (
        f"Median of runs ({many} of each scheme), at the {rate}{', of each seed the median over them' * ties}; {metric}"
        f" over all examples of a group. Diverged trials left out: {left_out}. Floors are of whole sizes, as `posenc"
        " evaluate` without groups and `posenc describe TASK` count them."
    )


def as_csv(rows: Rows, by: Sequence[str]) -> str:
    """Every trial and group, with its counts."""
    counts = ("correct", "scored", "exact", "last", "beyond", "beyond_scored", "rows")
    columns = ["task", "scheme", "trial", "seed", "lr", *by, *counts, "metric", "value"]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*columns[:-1], "accuracy"])  # the share right, whatever the metric
    for row in rows:
        of_row = dict.fromkeys(counts, "") | row.flat()
        writer.writerow([harmless(v) if isinstance(v := of_row[c], str) else v for c in columns])
    return buffer.getvalue()


def draw(rows: Rows, by: Sequence[str]) -> Figure:
    """A panel for each task with a line for each scheme, or for two groupings a heat map for each scheme and task."""
    if len(by) > 2:
        raise ValueError(f"A figure shows one grouping or two, and {', '.join(by)} are {len(by)}; leave some out.")
    cells = _cells(rows, by)
    names = list(cells) if len(by) == 2 else list(dict.fromkeys(task for task, _ in cells))
    looks = style.looks((row.scheme, row.family) for row in rows)
    down, across = shape(len(names))
    below = 0 if len(by) == 2 else 0.22 * style.lines(looks, 3.3 * across)
    with style.canvas(3.3 * across, 2.7 * down + below) as figure:
        for axes, name in zip(places(figure, len(names)), names, strict=True):
            if len(by) == 2:
                _heat(axes, cells[name], by)
                axes.set_title(style.title(f"{name[1]} · {name[0]}"))
                continue
            for (task, scheme), groups in cells.items():
                if task == name:
                    line(axes, {group[0]: values for group, values in groups.items()}, looks[scheme], scheme)
            axes.set(xlabel=by[0], ylabel="accuracy", ylim=(-0.02, 1.02))
            axes.set_title(style.title(name))
        if len(by) == 1:
            style.legend(figure, looks)
    return figure


def _cells(rows: Rows, by: Sequence[str]) -> dict[tuple[str, str], Groups]:
    """Task and scheme to group to one value for each seed, the median of its runs at the rates that tie."""
    runs: dict[tuple[str, str], dict[tuple[int, ...], dict[tuple[float, int], float]]] = {}
    for row in rows:
        group = tuple(row.group[name] for name in by)
        runs.setdefault((row.task, row.scheme), {}).setdefault(group, {})[row.lr, row.seed] = row.value
    return {key: seed_values(groups) for key, groups in runs.items()}


def _grid(groups: Groups, by: Sequence[str]) -> list[str]:
    down, across = (sorted({group[n] for group in groups}) for n in (0, 1))
    head = [f"{by[0]} \\ {by[1]}", *map(str, across)]
    medians = {group: f"{summary(values).median:.2f}" for group, values in groups.items()}
    table = [[str(a), *(medians.get((a, b), "·") for b in across)] for a in down]
    return style.aligned([head, *table])


def _list(groups: Groups, by: Sequence[str]) -> list[str]:
    lines = []
    for group, values in sorted(groups.items()):
        s = summary(values)
        named = ", ".join(f"{name} {value}" for name, value in zip(by, group, strict=True))
        lines.append(f"  {named}: {s.median:.2f} [{s.low:.2f}–{s.high:.2f}], n = {s.n}")
    return lines


def _heat(axes: Any, groups: Groups, by: Sequence[str]) -> None:
    down, across = (sorted({group[n] for group in groups}) for n in (0, 1))
    grid = np.array([[summary(groups[a, b]).median if (a, b) in groups else np.nan for b in across] for a in down])
    axes.set_facecolor(style.BAND)
    image = axes.imshow(np.ma.masked_invalid(grid), cmap="Blues", vmin=0, vmax=1, aspect="auto", origin="lower")
    axes.set_xticks(range(len(across)), across)
    axes.set_yticks(range(len(down)), down)
    axes.set(xlabel=by[1], ylabel=by[0])
    axes.figure.colorbar(image, ax=axes, label="accuracy", ticks=[0, 0.5, 1])
