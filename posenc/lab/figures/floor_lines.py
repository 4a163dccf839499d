"""The floors in a panel: dotted lines, each with its name above or below, where no line of results is."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from posenc.lab.figures import style
from posenc.lab.figures.panels import TRAINED, Floors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FLOORS = {"uniform": "guess", "prior": "constant", "bag": "most frequent token", "position": "position only"}
HEIGHTS = (0.5, 0.35, 0.65, 0.2, 0.8)
"""Heights for the name of the sizes trained on, as shares of the axis, in order of preference."""
Name = tuple[Any, float]
"""A text above floors, and the height of the lowest of them."""


def floor_lines(axes: Axes, known: Floors, start: float) -> list[Name]:
    """Dotted lines at the floors of each place along x, named from `start` on; close ones share a text.

    Call it after the ends of both axes are set, as they decide what is close; then `settle` the names.
    """
    along = sorted(known)
    groups: list[tuple[list[float], list[str]]] = []
    for name, word in FLOORS.items():
        at = [(x, known[x][name]) for x in along if name in known[x]]
        if not at:
            continue
        x, y = zip(*at, strict=True)
        axes.plot(x, y, color=style.SOFT, linestyle=(0, (1, 1.6)), linewidth=0.9, zorder=1.5, label=f"_{name}")
        ends = [float(np.interp(start + share * (along[-1] - start), x, y)) for share in (0, 0.27)]  # of the name
        group = next((g for g in groups if abs(_rise(axes, g[0][0]) - _rise(axes, ends[0])) < 0.053), None)
        if group is None:
            group = ([], [])
            groups.append(group)
        group[0].extend(ends)
        group[1].append(word)
    named = []
    for heights, words in groups:
        place = {"xy": (start, max(heights)), "xytext": (4, 1.5), "textcoords": "offset points", "va": "bottom"}
        text = axes.annotate(", ".join(words), **place, size=6.5, color=style.SOFT, zorder=4)
        named.append((text, min(heights)))
    return named


def settle(figure: Figure, names: Iterable[Name]) -> None:
    """After everything is drawn: a name that lies on a line of results moves below its floor, if there is room.

    The name of the sizes trained on moves to the first of `HEIGHTS` at which it lies on no line.
    """
    figure.draw_without_rendering()
    for text in (text for axes in figure.axes for text in axes.texts if text.get_label() == TRAINED):
        free = (y for y in HEIGHTS if not _on_a_line(text.axes, _at(text, y), {*FLOORS}))
        text.set_y(next(free, HEIGHTS[0]))
    for text, low in names:
        axes, above = text.axes, (text.xy, text.get_position(), text.get_va())
        if not _on_a_line(axes, text.get_window_extent()):
            continue
        _put(text, (text.xy[0], low), (above[1][0], -2.5), "top")
        box = text.get_window_extent()
        others = [other.get_window_extent().padded(-1) for other in axes.texts if other is not text]  # less its leading
        if box.y0 < axes.bbox.y0 or _on_a_line(axes, box) or any(map(box.overlaps, others)):
            _put(text, *above)


def _at(text: Any, height: float) -> Any:
    text.set_y(height)
    return text.get_window_extent()


def _put(text: Any, xy: tuple[float, float], offset: tuple[float, float], side: str) -> None:
    text.xy = xy
    text.set_position(offset)
    text.set_va(side)


def _rise(axes: Axes, y: float) -> float:
    """The height of a value, as a share of the axis."""
    return float((axes.transScale + axes.transLimits).transform((1.0, y))[1])


def _on_a_line(axes: Axes, box: Any, also: Collection[str] = ()) -> bool:
    """Whether a line of results goes through a box, in pixels; of the other lines, only those named in `also` count."""
    at = np.linspace(box.x0, box.x1, 16)
    for drawn in axes.get_lines():
        name = drawn.get_label()
        if not name.startswith("_") or name[1:] in also:
            points = axes.transData.transform(drawn.get_xydata())
            rise = np.interp(at, points[:, 0], points[:, 1], left=np.nan, right=np.nan)
            if ((rise > box.y0) & (rise < box.y1)).any():
                return True
    return False
