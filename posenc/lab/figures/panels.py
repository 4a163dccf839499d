"""Shared parts of figures of results: panels in rows, lines through medians with every run, sizes along x.

Nothing lies on data: the sizes trained on are a bracket above the axis, and names of floors stand in the right margin.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from posenc.lab.figures import style
from posenc.lab.figures.style import Look
from posenc.lab.results.evidence import Values
from posenc.lab.results.rates import seed_names, seed_values
from posenc.lab.results.statistics import LEAST, summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3
PANEL = 1.75
"""Inches of a panel, at least, in a figure for a paper."""
TRAINED = "_trained"
"""The label of the bracket over the sizes trained on, and of its text."""
TICKS = 12
"""The most places along x that are labelled each by itself."""
GAPS = {1: 0.05, 2: 0.09, 3: 0.12, 4: 0.14}
"""The least distance of two labels along x, as a share of the axis, by the panels in a row."""


Points = Mapping[str, Mapping[Any, Sequence[float]]]
"""Label of a line to place along x to one value for each run, in the order of runs."""
Floors = Mapping[Any, Mapping[str, float]]
"""Place along x to the floors that are known there, by name."""


@dataclass(frozen=True)
class Panel:
    """The content of one panel: points, the names of the two axes, and texts."""

    points: Points
    along: str
    up: str
    title: str = ""
    about: str = ""
    """The meaning of one point, in a sentence; of a task, its text."""
    floors: Floors | None = None
    """It is None if `up` is not an accuracy; empty if it is one with unknown floors."""
    trained: tuple[int, int] | None = None
    """The sizes trained on, where they stand along x."""
    log: bool | None = None
    """True if x is on a log axis; None if only where it doubles."""
    falling: bool = False
    """True if `up` is a loss, on a log axis, and not a share from 0 to 1."""
    highlighted: str | None = None
    """The only line that is drawn in its colour, if it is one of many; the others are grey."""
    ends: tuple[float, float] = (0.0, 1.0)
    """The ends of the axis of shares; what lies beyond them is cut off. Below 0 if `up` is a difference."""
    each: bool = False
    """True if every run is a line, without medians: if only some runs learn, a median shows no run."""
    bars: bool = False
    """True if spreads are bars, a little beside each other: bands of many lines would hide them."""
    seeds: Mapping[str, Mapping[Any, Sequence[int]]] = field(default_factory=dict)
    """Label of a line to place along x to the seeds of its values, where lines are of runs."""

    @property
    def places(self) -> list[Any]:
        """The places along x."""
        return sorted({x for of in self.points.values() for x in of})

    @property
    def is_logarithmic(self) -> bool:
        """Tell whether x is on a log axis, as `log` or the positions say."""
        return doubling(self.places) if self.log is None else self.log

    @classmethod
    def of_runs(cls, runs: Mapping[str, Mapping[Any, Values]], *texts: str, **options: Any) -> Panel:
        """Make the panel of some lines, each of positions along x and the values of runs there. A seed's value is the
        median over its rates."""
        points = {label: seed_values(of) for label, of in runs.items()}
        seeds = {label: seed_names(of) for label, of in runs.items()}
        return cls(points, *texts, **options, seeds=seeds)


@dataclass(frozen=True)
class Drawing:
    """A figure, and sentences that explain it."""

    figure: Figure
    caption: str
    rows: Sequence[Mapping[str, Any]] = ()
    """Its numbers, where they are others than every run at every size."""


def shape(panels: int, most: int = COLUMNS) -> tuple[int, int]:
    """Rows and columns for a number of panels, as many beside each other as the page takes."""
    page = style.PAGE.get()
    columns = min(most, panels, max(1, int(page.width / PANEL)) if page.family else most)
    return -(-panels // columns), columns


def places(figure: Figure, panels: int, most: int = COLUMNS, **options: Any) -> list[Axes]:
    """Axes for a number of panels; the rest of the last row stays empty."""
    grid = list(figure.subplots(*shape(panels, most), squeeze=False, **options).flat)
    for axes in grid[panels:]:
        axes.remove()
    return grid[:panels]


def line(
    axes: Axes,
    points: Mapping[Any, Sequence[float]],
    look: Look,
    name: str,
    place: Callable[[float], float] = float,
    offset: float | None = None,
    **options: Any,
) -> None:
    """Draw one value for each run at each position along x. A line goes through the medians, over a thin line for each
    of up to five runs, or a band over the spread of more.

    `place` maps a value to its height, since a log axis cannot show zero. With `offset`, points to the right, spreads
    are bars at that distance from their position.
    """
    from matplotlib.transforms import ScaledTranslation

    at = sorted(points)
    if offset is not None:
        options["transform"] = axes.transData + ScaledTranslation(offset / 72, 0, axes.figure.dpi_scale_trans)
    sums = [summary(points[x]) for x in at]
    if max(s.n for s in sums) >= LEAST:
        low, high = ([place(end) for end in ends] for ends in ([s.low for s in sums], [s.high for s in sums]))
        if offset is None:
            axes.fill_between(at, low, high, color=look.colour, alpha=0.18, linewidth=0)
        else:
            axes.vlines(at, low, high, color=look.colour, linewidth=0.8, **options)
    else:
        for run in itertools.zip_longest(*(points[x] for x in at)):
            dots = [(x, place(value)) for x, value in zip(at, run, strict=True) if value is not None]
            axes.plot(*zip(*dots, strict=True), color=look.colour, alpha=0.4, linewidth=0.6, label="_run", **options)
    styled = {"color": look.colour, "marker": look.marker, "linestyle": look.dash, "label": name, **options}
    size = {"linewidth": look.weight, "markersize": 2 + 1.2 * look.weight, "markeredgewidth": 0}
    size |= {"markevery": max(1, len(at) // TICKS)}
    axes.plot(at, [place(s.median) for s in sums], **styled, **size)


def along(axes: Axes, at: Sequence[float], name: str, log: bool | None = None, beside: int = 2) -> None:
    """Set up the x axis of one of `beside` panels in a row, with a label at each position that has room. It is
    logarithmic if `log`, and unless told where it doubles."""
    if log or log is None and doubling(at):
        axes.set_xscale("log", base=2 if doubling(at) else 10)
    steps = np.log(at) if axes.get_xscale() == "log" else np.asarray(at, float)
    margin = 0.03 * max(steps[-1] - steps[0], 0.1)
    ends = steps[0] - margin, steps[-1] + margin
    axes.set(xlim=np.exp(ends) if axes.get_xscale() == "log" else ends, xlabel=name)
    shrunk = style.PAGE_WIDTH / style.page_width()
    if len(at) <= TICKS:
        kept = spaced(list(steps), GAPS[beside] * shrunk * (ends[1] - ends[0]), [f"{x:g}" for x in at])
        axes.set_xticks([x for x, step in zip(at, steps, strict=True) if step in kept])
        axes.set_xticks([], minor=True)
        axes.set_xticklabels([f"{x:g}" for x in axes.get_xticks()])


def doubling(at: Sequence[float]) -> bool:
    """Tell whether positions along x grow by doubling: one of them, twice it and four times it are among them."""
    return any(x > 0 and 2 * x in at and 4 * x in at for x in at) and min(at) > 0


def lines_of_runs(axes: Axes, points: Mapping[Any, Sequence[float]], look: Look, name: str, clip_on: bool) -> None:
    """Draw a line for each run, without a line through the medians."""
    mark = {"color": look.colour, "marker": look.marker, "linestyle": look.dash, "clip_on": clip_on}
    size = {"linewidth": 1.0, "markersize": 3.5, "markeredgewidth": 0, "alpha": 0.75}
    for k in range(max(map(len, points.values()))):
        run = [(x, values[k]) for x, values in sorted(points.items()) if k < len(values)]
        axes.plot(*zip(*run, strict=True), label="_run" if k else name, **mark, **size)


def shares(axes: Axes, ends: tuple[float, float] = (0.0, 1.0)) -> None:
    """The y axis of shares, with a line at 0 where they are differences."""
    from matplotlib.ticker import MaxNLocator

    low, high = ends
    margin = 0.02 * (high - low)
    axes.set(ylim=(low - margin, high + margin))
    ticks = [0, 0.25, 0.5, 0.75, 1] if ends == (0, 1) else MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(low, high)
    ticks = [float(y) for y in ticks if low - 1e-9 <= y <= high + 1e-9]
    axes.set_yticks(ticks, [f"{y:g}".replace("0.", ".") for y in ticks])
    if low < 0:
        axes.axhline(0, color=style.SOFT, linewidth=0.7, zorder=1)


def bracket(axes: Axes, low: float, high: float, words: str = "trained on {}") -> None:
    """The sizes trained on, as a bracket above the axis; an end beyond the axis stays open. Call it after `along`."""
    from matplotlib.transforms import ScaledTranslation

    left, right = axes.get_xlim()
    ends = max(low, left), min(high, right)
    closed = [k for k, (end, at) in enumerate(zip((low, high), ends, strict=True)) if end == at]
    above = axes.get_xaxis_transform() + ScaledTranslation(0, 5 / 72, axes.figure.dpi_scale_trans)
    look = {"color": style.SOFT, "linewidth": 0.8, "marker": "|", "markersize": 5, "markevery": closed}
    axes.plot(ends, (1, 1), transform=above, clip_on=False, label=TRAINED, **look)
    wide = (axes.transData.transform((ends[1], 0)) - axes.transData.transform((left, 0)))[0] / axes.bbox.width
    side = {"ha": "left", "x": ends[0]} if wide < 0.85 else {"ha": "right", "x": ends[1]}
    text = words.format(ranged(int(low), int(high)))
    axes.text(side["x"], 1, text, transform=above + ScaledTranslation(0, 4 / 72, axes.figure.dpi_scale_trans),
              ha=side["ha"], va="bottom", size=6.5, color=style.SOFT, label=TRAINED)  # fmt: skip


def ranged(low: int, high: int, between: str = "–") -> str:
    """A range of sizes, or the only size."""
    return f"{low}{between}{high}" if low < high else str(high)


def spaced(places: Sequence[float], gap: float, texts: Sequence[str] = ()) -> list[float]:
    """Return the positions along x that are at least `gap` apart, so that their texts do not touch. Two with more than
    four characters together are further apart in proportion."""
    kept: list[int] = []
    sizes = [len(text) for text in texts] or [0] * len(places)
    for n, place in enumerate(places):
        if not kept or place - places[kept[-1]] >= gap * max(1.0, (sizes[n] + sizes[kept[-1]]) / 4):
            kept.append(n)
    return [places[n] for n in kept]
