"""Shared parts of figures of results: panels in rows, lines through medians with spreads and runs, sizes along x."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from posenc.lab.figures import style
from posenc.lab.figures.style import Look
from posenc.lab.results.statistics import summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3
TRAINED = "_trained"
"""The label of the text that names the sizes trained on, by which `settle` finds it to move it off a line."""


Points = Mapping[str, Mapping[Any, Sequence[float]]]
"""Scheme to place along x to one value for each run."""
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
    """The meaning of one point, in a sentence."""
    floors: Floors | None = None
    """None if `up` is not an accuracy; empty if it is one whose floors are unknown."""


@dataclass(frozen=True)
class Drawing:
    """A figure, and sentences that explain it."""

    figure: Figure
    caption: str


def shape(panels: int) -> tuple[int, int]:
    """Rows and columns for a number of panels."""
    columns = min(COLUMNS, panels)
    return -(-panels // columns), columns


def places(figure: Figure, panels: int, **how: Any) -> list[Axes]:
    """Axes for a number of panels; the rest of the last row stays empty."""
    every = list(figure.subplots(*shape(panels), squeeze=False, **how).flat)
    for axes in every[panels:]:
        axes.remove()
    return every[:panels]


def line(
    axes: Axes,
    found: Mapping[Any, Sequence[float]],
    look: Look,
    name: str,
    place: Callable[[float], float] = float,
    **how: Any,
) -> None:
    """One value for each run at each place along x: a line through the medians, a band over the spread, points.

    `place` maps a value to its height, since a log axis cannot show zero.
    """
    at = sorted(found)
    sums = [summary(found[x]) for x in at]
    every = [(x, place(value)) for x in at for value in found[x]]
    low, high = ([place(end) for end in ends] for ends in ([s.low for s in sums], [s.high for s in sums]))
    axes.fill_between(at, low, high, color=look.colour, alpha=0.13, linewidth=0)
    axes.scatter(*zip(*every, strict=True), s=5, color=look.colour, marker=look.marker, alpha=0.35, linewidths=0)
    styled = {"color": look.colour, "marker": look.marker, "linestyle": look.dash, "label": name, **how}
    axes.plot(at, [place(s.median) for s in sums], **styled, linewidth=1.4, markersize=3.6, markeredgewidth=0)


def sizes_trained(axes: Axes, sizes: Sequence[int], low: int, high: int) -> tuple[float, float]:
    """Mark the sizes trained on, and set and return the ends of the x axis."""
    span = max(sizes[-1] - min(sizes[0], high), 1)
    left, right = max(min(sizes[0], high - 0.14 * span), 0) - 0.03 * span, sizes[-1] + 0.03 * span
    axes.axvspan(left, high, color=style.BAND, linewidth=0, zorder=0)
    axes.axvline(high, color=style.SOFT, linewidth=0.8, zorder=1)
    end = min(high, right)
    tilt = 90 if end - left < 0.3 * (right - left) else 0
    how = {"rotation": tilt, "ha": "center", "va": "center", "size": 7, "color": style.SOFT, "label": TRAINED}
    axes.text((left + end) / 2, 0.5, f"trained on {ranged(low, high)}", transform=axes.get_xaxis_transform(), **how)
    axes.set(xlim=(left, right), xlabel="size")
    axes.set_xticks(spaced(sizes, 0.09 * span))
    return left, right


def ranged(low: int, high: int, between: str = "–") -> str:
    """A range of sizes, or the only size."""
    return f"{low}{between}{high}" if low < high else str(high)


def spaced(places: Sequence[int], gap: float) -> list[int]:
    """The places along x that are at least `gap` apart, so that their texts do not touch."""
    kept: list[int] = []
    for place in places:
        if not kept or place - kept[-1] >= gap:
            kept.append(place)
    return kept
