"""Accuracy of trained models in groups of examples, as text and as figures: the median over runs, with their number.

One grouping is a line over its values, two are a heat map. Tables are those of `posenc.lab.reuse.evaluate.groups`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from posenc.lab.figures import style
from posenc.lab.figures.across import figure_of
from posenc.lab.figures.captions import numbers
from posenc.lab.figures.panels import Panel
from posenc.lab.figures.rows import Grid, rows
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
        f" out: {left_out}. Baselines are of whole sizes, as `posenc evaluate` without groups and `posenc describe"
        " TASK` count them."
    )


def draw(table: pandas.DataFrame, by: Sequence[str]) -> Figure:
    """Draw a panel for each task with a line for each scheme, or for two groupings a heat map for each of both."""
    if len(by) > 2:
        raise ValueError(f"A figure shows one grouping or two, and {', '.join(by)} are {len(by)}; leave some out.")
    cells = _cells(table, by)
    if len(by) == 2:
        return _heat(cells, by)
    lines: dict[str, dict[str, Groups]] = {}
    for (task, scheme), groups in cells.items():
        lines.setdefault(task, {})[scheme] = groups
    looks = style.looks(zip(table.scheme, table.family, strict=True))
    panels = [Panel(of, by[0], "accuracy", task) for task, of in lines.items()]
    return figure_of(panels, looks, {scheme: scheme for scheme in looks})


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


def _heat(cells: Mapping[tuple[str, str], Groups], by: Sequence[str]) -> Figure:
    """A row for each value of the first grouping, and a grid for each scheme on each task."""
    names = {down: f"{by[0]} {down}" for down in sorted({group[0] for groups in cells.values() for group in groups})}
    grids = []
    for (task, scheme), groups in cells.items():
        shares: dict[str, dict[Any, float]] = {}
        for (down, along), values in groups.items():
            shares.setdefault(names[down], {})[along] = summary(values).median
        texts = {row: {along: f"{share:.2f}" for along, share in of.items()} for row, of in shares.items()}
        grids.append(Grid(f"{scheme} · {task}", by[1], shares, texts))
    return rows([*names.values()], grids)
