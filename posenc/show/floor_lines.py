"""The floors in a panel: dotted lines, each with its name where the fewest lines of results are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from posenc.show import style
from posenc.show.panels import Floors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FLOORS = {"uniform": "guess", "prior": "constant", "position": "position only"}


def floor_lines(axes: Axes, known: Floors, start: float) -> None:
    """Dotted lines at the floors of each place along x, named from `start` on; close ones share a text.

    To be called once the ends of both axes are set and the lines of results are drawn, which no text should lie on.
    """
    along = sorted(known)
    groups: list[tuple[list[float], list[str]]] = []
    for name, word in FLOORS.items():
        at = [(x, known[x][name]) for x in along if name in known[x]]
        if not at:
            continue
        x, y = zip(*at, strict=True)
        axes.plot(x, y, color=style.SOFT, linestyle=(0, (1, 1.6)), linewidth=0.9, zorder=1.5, label=f"_{name}")
        ends = [float(np.interp(start + share * (along[-1] - start), x, y)) for share in (0, 0.27)]  # of its name
        rise = _share(axes, start, ends[0])[1]
        group = next((g for g in groups if abs(_share(axes, start, g[0][0])[1] - rise) < 0.053), None)
        if group is None:
            group = ([], [])
            groups.append(group)
        group[0].extend(ends)
        group[1].append(word)
    levels = [_share(axes, start, max(heights))[1] for heights, _ in groups]
    for heights, words in groups:
        text, (x, low), high = ", ".join(words), _share(axes, start, min(heights)), _share(axes, start, max(heights))[1]
        tall, wide = _text(axes, text)
        room = low - max([0.0, *(level + tall for level in levels if level < low)])  # which no other name takes
        below = room >= tall and _crossed(axes, x, high, wide, tall) and not _crossed(axes, x, low - tall, wide, tall)
        at, by, side = (min(heights), -2.5, "top") if below else (max(heights), 1.5, "bottom")
        place = {"xy": (start, at), "xytext": (4, by), "textcoords": "offset points", "va": side}
        axes.annotate(text, **place, size=6.5, color=style.SOFT, zorder=4)


def _share(axes: Axes, x: float, y: float) -> tuple[float, float]:
    """How far along and how high a point stands, as shares of the axes."""
    along, up = (axes.transScale + axes.transLimits).transform((x, y))
    return float(along), float(up)


def _text(axes: Axes, text: str) -> tuple[float, float]:
    """How tall and how wide a small text is, as shares of the axes, before they are laid out: about."""
    wide, tall = axes.get_position().size * axes.get_figure().get_size_inches()
    return 0.12 / float(tall), (0.06 + 0.047 * len(text)) / float(wide)


def _crossed(axes: Axes, x: float, y: float, wide: float, tall: float) -> bool:
    """Whether a line of results goes through a box, of which the lower left corner and the size are given."""
    at = np.linspace(x, x + wide, 16)
    for drawn in axes.get_lines():
        points = np.array([_share(axes, *point) for point in drawn.get_xydata()])
        if not drawn.get_label().startswith("_"):
            rise = np.interp(at, points[:, 0], points[:, 1])
            if ((rise > y) & (rise < y + tall)).any():
                return True
    return False
