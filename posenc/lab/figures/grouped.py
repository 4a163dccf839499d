"""Accuracy of trained models in groups of examples, as text and as figures: the median over runs, with their number.

One grouping is a line over its values, two are a heat map. Tables are those of `posenc.lab.reuse.evaluate.groups`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from posenc.lab.figures import style
from posenc.lab.figures.captions import numbers
from posenc.lab.figures.panels import line, places, shape
from posenc.lab.results.statistics import summary

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

Groups = dict[Any, list[float]]
"""The values of the groupings, of several as a tuple, to one value for each seed."""


def as_text(table: pandas.DataFrame, by: Sequence[str], left_out: int) -> str:
    """Write a block for each scheme on each task: a grid for two groupings, else a line for each group."""
    parts = []
    for (task, scheme), groups in _cells(table, by).items():
        lines = _grid(groups, by) if len(by) == 2 else _list(groups, by)
        parts.append("\n".join([f"{style.plain(scheme)} · {style.plain(task)}", *lines]))
    return "\n\n".join([*parts, note(table, left_out)])


def note(table: pandas.DataFrame, left_out: int) -> str:
    """Write the note under the text: number of runs, metric, diverged trials, floors."""
    cells = table.groupby(["task", "scheme"])
    metric = ", ".join(sorted({"accuracy" if name == "error" else name for name in table.metric}))
    ties = bool((cells.lr.nunique() > 1).any())
    rate = "learning rates that tie on validation examples" if ties else "learning rate chosen on validation examples"
    return (
        f"Median of runs ({numbers(cells.seed.nunique())} of each scheme), at the {rate}"
        f"{', of each seed the median over them' * ties}; {metric} over all examples of a group. Diverged trials left"
        f" out: {left_out}. Floors are of whole sizes, as `posenc evaluate` without groups and `posenc describe TASK`"
        " count them."
    )


def draw(table: pandas.DataFrame, by: Sequence[str]) -> Figure:
    """Draw a panel for each task with a line for each scheme, or for two groupings a heat map for each of both."""
    if len(by) > 2:
        raise ValueError(f"A figure shows one grouping or two, and {', '.join(by)} are {len(by)}; leave some out.")
    cells = _cells(table, by)
    names = list(cells) if len(by) == 2 else list(dict.fromkeys(task for task, _ in cells))
    looks = style.looks(zip(table.scheme, table.family, strict=True))
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
                    line(axes, groups, looks[scheme], scheme)
            axes.set(xlabel=by[0], ylabel="accuracy", ylim=(-0.02, 1.02))
            axes.set_title(style.title(name))
        if len(by) == 1:
            style.legend(figure, looks)
    return figure


def _cells(table: pandas.DataFrame, by: Sequence[str]) -> dict[tuple[str, str], Groups]:
    """Task and scheme to group to one value for each seed, the median of its runs at the rates that tie."""
    seeds = table.groupby(["task", "scheme", *by, "seed"], sort=False).value.median()
    cells: dict[tuple[str, str], Groups] = {}
    for (task, scheme, *group, _), value in seeds.items():
        key = tuple(group) if len(by) > 1 else group[0]
        cells.setdefault((task, scheme), {}).setdefault(key, []).append(float(value))
    return cells


def _grid(groups: Groups, by: Sequence[str]) -> list[str]:
    down, across = (sorted({group[n] for group in groups}) for n in (0, 1))
    medians = {group: f"{summary(values).median:.2f}" for group, values in groups.items()}
    rows = [[str(a), *(medians.get((a, b), "·") for b in across)] for a in down]
    return style.aligned([[f"{by[0]} \\ {by[1]}", *map(str, across)], *rows])


def _list(groups: Groups, by: Sequence[str]) -> list[str]:
    lines = []
    for group, values in sorted(groups.items()):
        s, each = summary(values), group if len(by) > 1 else [group]
        head = ", ".join(f"{name} {value}" for name, value in zip(by, each, strict=True))
        lines.append(f"  {head}: {s.median:.2f} [{s.low:.2f}–{s.high:.2f}], n = {s.n}")
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
