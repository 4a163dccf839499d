"""The floors in a panel: dotted lines, each with its name in the right margin, and its height if below the axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from posenc.lab.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from posenc.lab.figures.panels import Floors

NAMES = {"uniform": "guess", "prior": "constant", "bag": "most frequent", "position": "position"}
NAMES |= {"unigram": "one token", "bigram": "bigram", "order 5": "order 5"}
NAMES |= {"bayes": "exact", "window 16": "sees 16", "window 64": "sees 64"}
ONE = "one error"
NAMES |= {ONE: ONE}
NAME = "_floor"
"""The label of a floor's name, by which `settle` finds it."""
BESIDE = 1.1
"""The factor by which an axis of losses goes beyond its floors."""
OUT = 3.0
"""Points from the axis to a name."""


def floor_lines(axes: Axes, floors: Floors) -> None:
    """Dotted lines at the floors of each place along x, named in the right margin. Then `settle` the names."""
    along, low = sorted(floors), axes.get_ylim()[0]
    for name, word in NAMES.items():
        at = [(x, floors[x][name]) for x in along if name in floors[x]]
        if not at:
            continue
        x, y = zip(*at, strict=True)
        dots = {"color": style.SOFT, "linestyle": (0, (1, 1.6)), "linewidth": 0.9, "zorder": 1.5}
        axes.plot(x, y, **dots, label=f"_{name}")
        place = {"xycoords": ("axes fraction", "data"), "xytext": (OUT, 0), "textcoords": "offset points"}
        text = word if y[-1] > low else f"{word} {y[-1]:.2f} ↓".replace(" 0.", " .")
        look = {"va": "center", "size": 6.5, "color": style.SOFT, "annotation_clip": False, "label": NAME}
        axes.annotate(text, (1, max(y[-1], low)), **place, **look)


def reach(axes: Axes, floors: Floors) -> None:
    """Let an axis of losses reach all floors, where there are more than guesses."""
    heights = [height for at in floors.values() for height in at.values()]
    if max(map(len, floors.values()), default=0) > 1:
        low, high = axes.get_ylim()
        axes.set_ylim(min(low, min(heights) / BESIDE), max(high, max(heights) * BESIDE))


def settle(figure: Figure) -> None:
    """After everything is drawn: names of floors that would touch move apart, as little as possible."""
    figure.draw_without_rendering()
    for axes in figure.axes:
        texts = sorted((t for t in axes.texts if t.get_label() == NAME), key=lambda t: _height(axes, t))
        if texts:
            tall = 0.9 * max(text.get_window_extent().height for text in texts)  # less its leading
            wanted = [_height(axes, text) for text in texts]
            for text, height, at in zip(texts, wanted, apart(wanted, tall, axes.bbox.y0), strict=True):
                text.set_position((OUT, (at - height) * 72 / figure.dpi))


def apart(wanted: list[float], gap: float, least: float) -> list[float]:
    """Heights near those wanted, in their order, at least `gap` apart and none below `least`."""
    groups: list[list[float]] = []  # each its lowest height and its number
    for height in wanted:
        groups.append([max(height, least), 1, height])
        while len(groups) > 1 and groups[-2][0] + gap * groups[-2][1] > groups[-1][0]:
            _, n, total = groups.pop()
            _, m, before = groups.pop()
            middle = (before + total) / (m + n)
            groups.append([max(middle - gap * (m + n - 1) / 2, least), m + n, before + total])
    return [low + gap * k for low, n, _ in groups for k in range(int(n))]


def _height(axes: Axes, text: Any) -> float:
    """The height of a floor at the right end of the axis, in pixels."""
    return float(axes.transData.transform((axes.get_xlim()[1], text.xy[1]))[1])
