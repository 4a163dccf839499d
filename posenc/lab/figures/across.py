"""A figure of results against something other than size: a distance, a learning rate, a position. No jax.

If an axis is an accuracy, the three floors are drawn, for the sizes and tasks of its points.
"""

from __future__ import annotations

from collections.abc import Sequence

from posenc.lab.figures import style
from posenc.lab.figures.floor_lines import floor_lines, settle
from posenc.lab.figures.panel_captions import caption
from posenc.lab.figures.panels import Drawing, Panel, line, places, shape
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import cells

TICKS = 7
"""The largest number of places on an axis that are all labelled; labels of more would touch."""


def across(results: Results, panel: Panel, *, log: bool = False, every_rate: bool = False) -> Drawing:
    """One panel: a line through medians, a band over the spread, a point for each run, for each scheme."""
    return panels(results, [panel], log=log, every_rate=every_rate)


def panels(results: Results, shown: Sequence[Panel], *, log: bool = False, every_rate: bool = False) -> Drawing:
    """Several panels beside each other, with their caption; `log` makes the x axis logarithmic.

    With `every_rate` the points are runs at every learning rate tried, otherwise at the chosen one.
    """
    style.need_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    families = {c.scheme: c.family for c in cells(results)}
    looks = style.looks((s, families.get(s, "none")) for panel in shown for s in panel.points)
    if not looks:
        raise ValueError(f"{results.name!r} has no finished trial to draw; run it first, or see `posenc status`.")
    with matplotlib.rc_context(style.RC):
        rows, columns = shape(len(shown))
        wide = 3.3 * columns + 0.9
        figure = Figure(figsize=(wide, 2.7 * rows + 0.22 * style.lines(looks, wide)), layout="constrained")
        named = []
        for axes, panel in zip(places(figure, len(shown)), shown, strict=True):
            points, at = panel.points, sorted({x for of in panel.points.values() for x in of})
            for scheme in sorted(points, key=list(looks).index):
                line(axes, points[scheme], looks[scheme], scheme)
            axes.set(xlabel=panel.along, ylabel=panel.up, ylim=(-0.02, 1.02), xscale="log" if log else "linear")
            if panel.floors:
                named += floor_lines(axes, panel.floors, min(panel.floors))
            axes.set_title(style.title(panel.title), pad=9)
            if len(at) <= TICKS:
                axes.set_xticks(at, [f"{x:g}" for x in at])
                axes.set_xticks([], minor=True)
        style.legend(figure, looks)
        settle(figure, named)
    return Drawing(figure, caption(results, shown, log=log, every_rate=every_rate))
