"""Figures of stored results: every seed is a point, the median a line, the spread a band that the caption explains.

Every panel of a length curve marks the sizes trained on and draws the three floors of its task: the accuracy of a
uniform guess, of the best constant, and of the best function of position alone. A heat map prints the best floor in a
separate column. No jax; matplotlib is imported by the functions that draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from posenc.lab.figures import style
from posenc.lab.figures.captions import caption as caption
from posenc.lab.figures.captions import metric_named
from posenc.lab.figures.files import save as save
from posenc.lab.figures.floor_lines import FLOORS, Name, floor_lines, settle
from posenc.lab.figures.panels import Drawing, line, places, shape, sizes_trained
from posenc.lab.results.results import Results, best_floor, floors
from posenc.lab.results.statistics import Summary, TableCell, cells, summary
from posenc.lab.store.schema import TaskRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def length(results: Results) -> Drawing:
    """Accuracy against size, with its caption."""
    return Drawing(length_curve(results), caption(results))


def heat(results: Results) -> Drawing:
    """Task by scheme, with its caption."""
    return Drawing(heat_map(results), caption(results, "heatmap"))


def length_curve(results: Results) -> Figure:
    """Accuracy against size, one panel per task and training range, one line per scheme."""
    style.need_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    found = shown(results)
    tasks = results.tasks()
    names = sorted({(c.task, c.trained) for c in found})
    looks = style.looks((c.scheme, c.family) for c in found)
    rows, columns = shape(len(names))
    with matplotlib.rc_context(style.RC):
        wide = 3.1 * columns + (1.7 if columns == 1 else 0.4)
        figure = Figure(figsize=(wide, 2.5 * rows + 0.22 * style.lines(looks, wide) + 0.2), layout="constrained")
        named, up = [], {metric_named(tasks[task].metric) for task, _ in names}
        for axes, (task, trained) in zip(places(figure, len(names), sharey=True), names, strict=True):
            named += _panel(axes, [c for c in found if (c.task, c.trained) == (task, trained)], tasks[task], looks)
            if len(up) > 1:
                axes.set_ylabel(metric_named(tasks[task].metric))
        if len(up) == 1:
            figure.supylabel(*up, fontsize=8.5, color=style.INK)
        style.legend(figure, looks)
        settle(figure, named)
    return figure


def heat_map(results: Results) -> Figure:
    """Task by scheme: accuracy over the sizes beyond the training range, the median over runs, with their number.

    The last column is the best of the task's floors over the same sizes. A task trained on several ranges has a row
    for each.
    """
    style.need_matplotlib()
    import matplotlib
    import numpy as np
    from matplotlib.figure import Figure

    found = {((c.task, c.trained), c.scheme): c for c in shown(results)}
    if not extrapolates(results):
        raise ValueError(
            f"{results.name!r} has no size beyond the training range, which a heat map needs; use --figure length."
        )
    about, rows = results.tasks(), sorted({row for row, _ in found})
    schemes = list(style.looks((c.scheme, c.family) for c in found.values()))
    sums = {key: summary(cell.means(cell.beyond).values()) for key, cell in found.items()}
    bases = [_base(about[row[0]], [c for key, c in found.items() if key[0] == row]) for row in rows]
    grid = np.array([[sums[r, s].median if (r, s) in sums else np.nan for s in schemes] for r in rows])
    grid = np.column_stack([grid, [np.nan if base is None else base[1] for base in bases]])
    with matplotlib.rc_context({**style.RC, "axes.spines.left": False, "axes.spines.bottom": False}):
        figure = Figure(figsize=(3.25 + 0.85 * len(schemes), 1.9 + 0.5 * len(rows)), layout="constrained")
        axes = figure.subplots()
        axes.set_facecolor(style.BAND)
        image = axes.imshow(np.ma.masked_invalid(grid), cmap="Blues", vmin=0, vmax=1, aspect="auto")
        for (row, column), value in np.ndenumerate(grid):
            key = (rows[row], schemes[column]) if column < len(schemes) else None
            text = _base_text(bases[row]) if key is None else _cell_text(sums.get(key))
            axes.text(
                column, row, text, ha="center", va="center", color="white" if value > 0.6 else style.INK, size=7.5
            )
        names = [*(style.plain(s) for s in schemes), "best floor"]
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
        axes.set_yticks(range(len(rows)), [_row_name(row, rows) for row in rows])
        axes.set_xticks(np.arange(len(schemes)) + 0.5, minor=True)
        axes.set_yticks(np.arange(len(rows) - 1) + 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=1.5)
        axes.tick_params(which="both", length=0)
        figure.colorbar(image, ax=axes, label="accuracy beyond the training range", ticks=[0, 0.5, 1], pad=0.02)
    return figure


def extrapolates(results: Results) -> bool:
    """Whether any size beyond a training range was measured."""
    return any(c.beyond for c in cells(results))


def shown(results: Results) -> tuple[TableCell, ...]:
    """The cells with a finished run. Raises `ValueError` if there is none."""
    found = tuple(c for c in cells(results) if c.n)
    if not found:
        raise ValueError(f"{results.name!r} has no finished trial to draw; run it first, or see `posenc status`.")
    return found


def _base(task: TaskRecord, found: list[TableCell]) -> tuple[str, float] | None:
    return best_floor(task, sorted({n for c in found for n in c.beyond}))


def _base_text(base: tuple[str, float] | None) -> str:
    return f"{base[1]:.2f}\n{FLOORS[base[0]]}" if base else "not\nknown"


def _cell_text(found: Summary | None) -> str:
    """The text of a cell; a summary without runs has no size beyond training that all its runs share."""
    if found is None:
        return "no\nresult"
    return f"{found.median:.2f}\nn={found.n}" if found.n else "no longer\nsize"


def _row_name(row: tuple[str, tuple[int, int]], rows: list[tuple[str, tuple[int, int]]]) -> str:
    """The task, and its training range if the task has several."""
    task, (low, high) = row
    several = sum(other == task for other, _ in rows) > 1
    return style.plain(task) + (f"\ntrained on {low}–{high}" if several else "")


def _panel(axes: Axes, found: list[TableCell], task: TaskRecord, looks: dict[str, style.Look]) -> list[Name]:
    sizes = sorted({size for cell in found for size in cell.values})
    low, high = found[0].trained
    sizes_trained(axes, sizes, low, high)
    axes.set(ylim=(-0.02, 1.02), yticks=[0, 0.25, 0.5, 0.75, 1])
    axes.set_yticklabels(["0", ".25", ".5", ".75", "1"])
    for cell in sorted(found, key=lambda c: list(looks).index(c.scheme)):
        line(axes, cell.values, looks[cell.scheme], cell.scheme, clip_on=False)
    axes.set_title(style.title(task.label), pad=9)
    axes.tick_params(length=2.5)
    known = {n: at for n, at in floors(task).items() if n in sizes}
    ends = next((n for n in sizes if n >= high), sizes[0])  # of training, where scores are high
    return floor_lines(axes, known, ends)
