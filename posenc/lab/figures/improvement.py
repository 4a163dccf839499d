"""Each scheme beside one control: the interquartile mean of its scores, and how probably a run of it is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from posenc.lab.figures import style
from posenc.lab.figures.captions import listed
from posenc.lab.figures.panels import Drawing
from posenc.lab.figures.profile import SCORES, explained
from posenc.lab.results.control import TASKS, Against, against, control_of
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import LEAST, LEVEL, cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Value = Callable[[Against], float]
Ends = Callable[[Against], tuple[float, float] | None]


def improvement(results: Results, control: str | None = None) -> Drawing:
    """A row for each scheme, the best rank first, with two columns: interquartile mean, probability of improvement."""
    control = control_of(results, control)
    rows, looks = by_rank(results, control)
    with style.canvas(6.9, 1.0 + 0.24 * len(rows)) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        _column(left, rows, looks, lambda row: row.middle, lambda row: row.middle_interval)
        _column(right, rows, looks, lambda row: row.improvement, lambda row: row.improvement_interval, control)
        left.axvline(0, color=style.SOFT, linewidth=0.8, linestyle=":", zorder=0)
        right.axvline(0.5, color=style.SOFT, linewidth=0.8, linestyle=":", zorder=0)
        left.set(xlabel="interquartile mean of scores", ylim=(len(rows) - 0.5, -0.5))
        left.set_yticks(range(len(rows)), [style.plain(row.scheme) for row in rows])
        right.set(xlabel="probability of a better run", xlim=(-0.02, 1.02))
        for axes in (left, right):
            axes.tick_params(length=2.5)
            axes.tick_params(axis="y", length=0)
    return explained(figure, _caption_lines(rows, control), results, rows[0].tasks)


def by_rank(results: Results, control: str) -> tuple[list[Against], dict[str, style.Look]]:
    """The schemes beside the control, the best rank first, and their looks."""
    rows = sorted(against(results, control), key=lambda row: (row.rank, row.scheme))
    families = {cell.scheme: cell.family for cell in cells(results)}
    return rows, style.looks((row.scheme, families[row.scheme]) for row in rows)


def _column(
    axes: Axes,
    rows: Sequence[Against],
    looks: dict[str, style.Look],
    value: Value,
    ends: Ends,
    control: str | None = None,
) -> None:
    """A point for each row, and its interval where there is one; the control beside itself has none."""
    for n, row in enumerate(rows):
        look = looks[row.scheme]
        if row.scheme == control:
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
            axes.text(0.5, n, "control", ha="center", va="center", size=7.5, color=style.SOFT, bbox=box, zorder=1)
            continue
        if (interval := ends(row)) is not None:
            axes.plot(interval, [n, n], color=look.colour, linewidth=2.2, alpha=0.45, solid_capstyle="butt")
        axes.plot([value(row)], [n], look.marker, color=look.colour, markersize=5, markeredgewidth=0, clip_on=False)


def _caption_lines(rows: Sequence[Against], control: str) -> list[str]:
    tasks, n = rows[0].tasks, min(row.n for row in rows)
    runs = f"{len(tasks)} tasks" if len(tasks) > 1 else style.plain(tasks[0])
    head = f"Each scheme beside {style.plain(control)}, the control, over {runs}, at least {n} runs of each"
    if all(row.middle_interval for row in rows):
        bars = "Bars: left 95% percentile bootstrap over runs, stratified by task, of the interquartile mean; right 95%"
        bars += " Wilson of the mean probability over tasks, of as many runs as a task has."
    else:
        bars = f"No bars, since they need {LEAST} runs of each task."
    return [f"{head}. {SCORES}.", f"{bars} {tested(rows, control)}"]


def tested(rows: Sequence[Against], control: str) -> str:
    """Which schemes rank otherwise than the control, after Holm's correction."""
    if len(rows[0].tasks) < TASKS:
        return f"Fewer than {TASKS} tasks: ranks are not tested."
    apart = [row.scheme for row in rows if row.p is not None and row.p < 1 - LEVEL]
    which = f"{listed(apart)} {'ranks' if len(apart) == 1 else 'rank'}" if apart else "no scheme ranks"
    return f"By mean rank over tasks, {which} otherwise than {style.plain(control)} at 5% after Holm's correction."
