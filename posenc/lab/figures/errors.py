"""Error rate against size on a log axis, for schemes that are nearly always right.

A log axis has no zero, so runs without an error are on a separate line, below the line of one error in all scored
answers, with the number of scored answers beside it. No jax.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from posenc.lab import metrics
from posenc.lab.figures import style
from posenc.lab.figures.across import LETTERS, by_merit
from posenc.lab.figures.captions import metric_named, spreads
from posenc.lab.figures.figures import shown
from posenc.lab.figures.floor_lines import NAME, OUT, floor_lines, settle
from posenc.lab.figures.panel_captions import axes_named, coded, ending, floors_named, runs_named
from posenc.lab.figures.panels import Drawing, Panel, along, bracket, line, places, shape, spaced
from posenc.lab.results.floors import floors
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import LEAST, TableCell, by_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from posenc.lab.figures.panels import Floors

TEXT = 0.13
"""The share of the axis that a count takes."""
BELOW = 4
"""Zero errors are drawn at the rate of one error divided by this, so that a median can lie between the two."""


def error_curve(results: Results) -> Drawing:
    """Error rate against size, one panel per task and training range, one line per scheme."""
    cells, tasks = shown(results), results.tasks()
    groups = sorted(by_range(cells).items())
    looks = style.looks((c.scheme, results.words.family(c.scheme, c.family)) for c in cells)
    names = results.words.lines(c.scheme for c in cells)
    panels, sentences = [], []
    rows, columns = shape(len(groups))
    below = 0.17 * style.lines(list(names.values()), style.PAGE_WIDTH) + 0.1
    with style.canvas(style.PAGE_WIDTH, 2.4 * rows + below) as figure:
        for axes, ((task, _), group) in zip(places(figure, len(groups)), groups, strict=True):
            group.sort(key=lambda c: list(looks).index(c.scheme))
            totals, shares = scored(results, task), floors(tasks[task])
            error_floors = {n: {name: 1 - share for name, share in at.items()} for n, at in shares.items()}
            if not any(totals.values()):
                raise ValueError(
                    f"Every trial of {task!r} diverged, so there is no error rate to draw; use --figure length."
                )
            panel = _rates(results, group, totals, error_floors)
            _panel(axes, panel, totals, looks, columns)
            panels.append(panel)
            sentences.append(_errors_sentence(group, totals, names))
        best = by_merit([replace(panel, falling=True) for panel in panels])
        style.legend(figure, {scheme: looks[scheme] for scheme in best}, names)
        settle(figure)
    return Drawing(figure, _caption(results, panels, sentences, names))


def scored(results: Results, task: str) -> dict[int, int]:
    """Size to the number of answers scored in the test set, which all runs share."""
    totals: dict[int, int] = {}
    for record in results.records:
        if record.task.label == task:
            for trial in record.trials:
                for n, counts in trial.evaluations.items():
                    totals[n] = max(totals.get(n, 0), metrics.right_and_total(counts, record.task.metric)[1])
    return totals


def wrong(cell: TableCell, totals: Mapping[int, int], size: int) -> tuple[int, int]:
    """The wrong answers of all runs together at a size, and the number scored."""
    return sum(round((1 - v) * totals[size]) for v in cell.values[size]), totals[size] * len(cell.values[size])


def _rates(results: Results, cells: list[TableCell], totals: Mapping[int, int], error_floors: Floors) -> Panel:
    """The error rates of one task, at the sizes of which any answer was scored."""
    at = [n for n in sorted({n for cell in cells for n in cell.values}) if totals.get(n)]
    points = {c.scheme: {n: [1 - v for v in c.values[n]] for n in at if n in c.values} for c in cells}
    task, metric = cells[0].task, metric_named(cells[0].metric)
    up = metric.replace("accuracy", "error rate")
    title, code = results.words.title(task), results.words.code(task)
    here = {n: error_floors[n] for n in at if n in error_floors}
    return Panel(points, results.words.unit(task), up, title, code, here, cells[0].trained)


def _panel(axes: Axes, panel: Panel, totals: Mapping[int, int], looks: Mapping[str, style.Look], beside: int) -> None:
    at = panel.places
    least = 1 / max(totals[n] for n in at)
    none = least / BELOW
    along(axes, at, panel.along, beside=beside)
    decades = [10.0**-k for k in range(12) if 10.0**-k >= least]
    axes.set(yscale="log", ylim=(none / 2.5, 1.2), ylabel=panel.up)
    axes.set_yticks([none, *decades], ["0", *(f"{rate:g}" for rate in decades)])
    axes.set_yticks([], minor=True)
    axes.plot(at, [1 / totals[n] for n in at], color=style.SOFT, linestyle=(0, (4, 3)), linewidth=0.7, zorder=1.5)
    margin = {"xycoords": ("axes fraction", "data"), "xytext": (OUT, 0), "textcoords": "offset points", "va": "center"}
    look = {"size": 6.5, "color": style.SOFT, "annotation_clip": False, "label": NAME}
    axes.annotate("one error", (1, 1 / totals[at[-1]]), **margin, **look)
    for scheme in sorted(panel.points, key=list(looks).index):
        line(axes, panel.points[scheme], looks[scheme], scheme, lambda rate: max(rate, none), clip_on=False)
    without = [n for n in at if any(0 in of.get(n, ()) for of in panel.points.values())]
    for n in spaced(without, TEXT * (at[-1] - at[0])):
        end = {"xytext": (0, -4), "ha": "right"} if n == at[-1] else {"xytext": (2.5, -4), "ha": "left"}
        below = {**end, "textcoords": "offset points", "va": "top", "size": 6.5, "color": style.INK, "zorder": 4}
        axes.annotate(f"0 of {totals[n]:,}", (n, none), **below)
    axes.set_title(style.title(panel.title, LETTERS[beside]), pad=18)
    axes.tick_params(length=2.5)
    floor_lines(axes, panel.floors or {})
    bracket(axes, *(panel.trained or (at[0], at[-1])))


def _errors_sentence(cells: list[TableCell], totals: Mapping[int, int], names: Mapping[str, str]) -> str:
    """The errors of each scheme at the largest size trained on."""
    inside, measured = [n for c in cells for n in c.inside], [n for c in cells for n in c.values]
    n = max(inside, default=min(measured))
    here = sorted((c for c in cells if n in c.values), key=lambda c: (wrong(c, totals, n), c.scheme))
    counts = ["{} {:,} of {:,}".format(style.plain(names[c.scheme]), *wrong(c, totals, n)) for c in here]
    return f"Errors of all runs together at {n}: {', '.join(counts)}."


def _caption(results: Results, panels: list[Panel], sentences: list[str], names: Mapping[str, str]) -> str:
    groups = [values for panel in panels for of in panel.points.values() for values in of.values()]
    each = [axes_named(p.title, p.up, p.along, "", p.about).replace("(up)", "(up, on a log axis)") for p in panels]
    runs = runs_named(of for panel in panels for of in panel.points.values())
    few = max(map(len, groups)) < LEAST
    spread = "thin lines single runs" if few else f"bands {spreads(groups)}"
    marks = (
        f"Thick lines are medians of runs, {spread}{floors_named(panels)}, as error rates. The dashed line is one error"
        " in all scored answers; what has none stands below it, at 0."
    )
    coding = coded(results, names)
    return "\n".join(
        [f"{'; '.join(each)}; {runs}.", f"{marks} {coding}".strip(), " ".join(sentences), *ending(results)]
    )
