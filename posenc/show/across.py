"""A figure of results against anything but size: how far back, which learning rate, where it was read. No jax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from posenc.lab.results import Results
from posenc.lab.stats import cells
from posenc.show import style
from posenc.show.panels import line, places, shape

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TICKS = 7
"""So many places on an axis are named each; more would touch."""
Points = Mapping[str, Mapping[float, Sequence[float]]]
"""Scheme to place on the x axis to one value for each run."""


def across(results: Results, points: Points, along: str, up: str, *, floor: float | None = None, log: bool = False):
    """One panel: a line through medians, a band over the spread, a point for each run, for each scheme."""
    return panels(results, [("", points, along, up, floor)], log=log)


def panels(
    results: Results, shown: Sequence[tuple[str, Points, str, str, float | None]], *, log: bool = False
) -> Figure:
    """Several panels beside each other: title, points, what lies along, what goes up, a floor or none."""
    style.need_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    families = {c.scheme: c.family for c in cells(results)}
    looks = style.looks((s, families.get(s, "none")) for _, points, *_ in shown for s in points)
    if not looks:
        raise ValueError(f"{results.name!r} holds no finished trial to draw; run it first, or see `posenc status`.")
    with matplotlib.rc_context(style.RC):
        rows, columns = shape(len(shown))
        wide = 3.3 * columns + 0.9
        figure = Figure(figsize=(wide, 2.7 * rows + 0.22 * style.lines(looks, wide)), layout="constrained")
        for axes, (title, points, along, up, floor) in zip(places(figure, len(shown)), shown, strict=True):
            for scheme in sorted(points, key=list(looks).index):
                line(axes, points[scheme], looks[scheme], scheme)
            if floor is not None:
                axes.axhline(floor, color=style.SOFT, linestyle=(0, (1, 1.6)), linewidth=0.9, zorder=1.5)
            axes.set(xlabel=along, ylabel=up, ylim=(-0.02, 1.02), xscale="log" if log else "linear")
            axes.set_title(style.title(title), pad=9)
            if len(at := sorted({x for of in points.values() for x in of})) <= TICKS:
                axes.set_xticks(at, [f"{x:g}" for x in at])
                axes.set_xticks([], minor=True)
        style.legend(figure, looks)
    return figure
