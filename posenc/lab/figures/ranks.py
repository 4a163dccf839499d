"""Mean ranks over tasks: a critical-difference diagram of all pairs (Demšar, 2006), or all beside one control."""

from __future__ import annotations

from typing import TYPE_CHECKING

from posenc.lab.figures import style
from posenc.lab.figures.improvement import by_rank, tested
from posenc.lab.figures.panels import Drawing, spaced
from posenc.lab.figures.profile import SCORES, explained
from posenc.lab.results.control import TASKS
from posenc.lab.results.critical_difference import Ranking, ranking, spans
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import LEVEL

if TYPE_CHECKING:
    from matplotlib.axes import Axes


SPARSE = 12
"""The most places on the axis of a diagram that are all labelled."""


def ranks(results: Results, control: str | None = None) -> Drawing:
    """The diagram of all pairs; with a control a row for each scheme, however many there are."""
    return _diagram(results) if control is None else _beside(results, control)


def _diagram(results: Results) -> Drawing:
    """Schemes along an axis of mean ranks; a bar joins those that do not differ."""
    mean_ranks = ranking(results)
    groups, half = spans(mean_ranks.groups), (len(mean_ranks.schemes) + 1) // 2
    lines = 1 + max((line for *_, line in groups), default=-1)
    with style.canvas(6.9, 0.75 + 0.16 * lines + 0.21 * half) as figure:
        axes = figure.subplots()
        _axis(axes, mean_ranks)
        for first, last, line in groups:
            ends = mean_ranks.ranks[first] - 0.04, mean_ranks.ranks[last] + 0.04
            axes.plot(ends, [-0.5 - 0.75 * line] * 2, color=style.INK, linewidth=2.6, solid_capstyle="butt")
        depth = 0.75 * lines + 0.6
        _names(axes, mean_ranks, half, depth)
        many = len(mean_ranks.schemes)
        axes.set(ylim=(0.3 - depth - half, 2.6), xlim=(0.4 - 0.35 * many, 0.6 + 1.35 * many))
        axes.axis("off")
    return explained(figure, _caption_lines(mean_ranks), results, mean_ranks.tasks)


def _axis(axes: Axes, mean_ranks: Ranking) -> None:
    many = len(mean_ranks.schemes)
    axes.plot([1, many], [0, 0], color=style.INK, linewidth=0.9)
    for place in range(1, many + 1):
        named = place % 2 == 1 or many <= SPARSE
        axes.plot([place, place], [0, 0.28 if named else 0.16], color=style.INK, linewidth=0.9)
        if named:
            axes.text(place, 0.42, str(place), ha="center", va="bottom", size=8)
    if mean_ranks.critical is not None:
        end = min(1 + mean_ranks.critical, many)
        axes.plot([1, end], [1.75, 1.75], color=style.SOFT, linewidth=1.6)
        text = f"critical difference {mean_ranks.critical:.2f}"
        axes.text(1, 1.95, text, ha="left", va="bottom", size=8, color=style.SOFT)


def _names(axes: Axes, mean_ranks: Ranking, half: int, depth: float) -> None:
    """The better half to the left, the other to the right, each with a line to its place."""
    many = len(mean_ranks.schemes)
    for n, (scheme, rank) in enumerate(zip(mean_ranks.schemes, mean_ranks.ranks, strict=True)):
        left = n < half
        height, side = -depth - (n if left else many - 1 - n), 0.7 if left else many + 0.3
        axes.plot([rank, rank, side], [0, height, height], color=style.SOFT, linewidth=0.8, zorder=0)
        text = f"{style.plain(scheme)}  {rank:.2f}" if left else f"{rank:.2f}  {style.plain(scheme)}"
        where = {"ha": "right" if left else "left", "va": "center", "size": 8.5}
        axes.text(side - 0.08 if left else side + 0.08, height, text, **where)


def _caption_lines(mean_ranks: Ranking) -> list[str]:
    head = f"Mean ranks over {len(mean_ranks.tasks)} tasks, 1 the best. {SCORES}."
    if mean_ranks.critical is None:
        test = f"Fewer than {TASKS} tasks: nothing is tested."
    else:
        test = (
            f"A bar joins schemes that do not differ: their mean ranks are closer than Nemenyi's critical difference "
            f"at 5%, {mean_ranks.critical:.2f}."
        )
        if mean_ranks.alike is not None:
            test += (
                f" Friedman's test that all rank alike, corrected by Iman and Davenport, has p = {mean_ranks.alike:.2g}"
            )
            test += "." if mean_ranks.alike < 1 - LEVEL else ": nothing shows that any two differ."
    return [head, test]


def _beside(results: Results, control: str) -> Drawing:
    """A row for each scheme; those that rank like the control are grey."""
    rows, looks = by_rank(results, control)
    place = next(row.rank for row in rows if row.scheme == control)
    with style.canvas(4.6, 0.9 + 0.2 * len(rows)) as figure:
        axes = figure.subplots()
        axes.axvline(place, color=style.SOFT, linewidth=0.8, linestyle=":", zorder=0)
        for n, row in enumerate(rows):
            look, apart = looks[row.scheme], row.p is not None and row.p < 1 - LEVEL
            colour = style.INK if row.scheme == control else look.colour if apart else "#b5b5b5"
            axes.plot([place, row.rank], [n, n], color=colour, linewidth=1.2, alpha=0.6)
            axes.plot([row.rank], [n], look.marker, color=colour, markersize=5, markeredgewidth=0)
        axes.set(xlabel="mean rank over tasks", ylim=(len(rows) - 0.5, -0.5), xlim=(0.8, len(rows) + 0.2))
        axes.set_xticks(spaced(range(1, len(rows) + 1), len(rows) / 12))
        names = [style.plain(row.scheme) + " (control)" * (row.scheme == control) for row in rows]
        axes.set_yticks(range(len(rows)), names)
        axes.tick_params(length=2.5)
        axes.tick_params(axis="y", length=0)
    tasks = rows[0].tasks
    head = f"Mean ranks over {len(tasks)} tasks among {len(rows)} schemes, 1 the best. {SCORES}."
    return explained(figure, [head, f"{tested(rows, control)} Those that do not are grey."], results, tasks)
