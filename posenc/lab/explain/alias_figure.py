"""The phases of pairs and the score of a head by distance under RoPE; and aliases over accuracy by place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from posenc.lab.explain.aliases import WITHIN, Alias, Head, Stretch, find_aliases
from posenc.lab.figures import style
from posenc.lab.figures.panels import bracket

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TARGET, ALIAS = style.HUES["linear"], style.HUES["rotary"]


def draw(heads: Mapping[str, Head], size: int, within: float = WITHIN) -> Figure:
    """For each scheme two panels: the phases of its pairs by distance, and the score of the head.

    Scores are scaled so that the target has 1 and the nearest other distance within training 0.
    """
    with style.canvas(style.PAGE_WIDTH, 2.0 * len(heads) + 0.3) as figure:
        grid = figure.subplots(len(heads), 2, squeeze=False, sharex=True)
        for (left, right), (name, head) in zip(grid, heads.items(), strict=True):
            distances = range(1 - size, size - head.back)
            aliases = find_aliases(head, size, within)
            _phases(left, head, distances, aliases, name)
            _score(right, head, distances, aliases, within, name)
            right.set_xlim(distances[0] - 0.5, distances[-1] + 0.5)
        for axes in grid[-1]:
            axes.set_xlabel("key minus query, in positions")
    return figure


def mark(axes: Axes, parts: Sequence[Stretch], height: float) -> None:
    """Over accuracy by place: lines where an alias comes into view or leaves it, and at this height the aliases of each
    stretch."""
    for part in parts:
        if part is not parts[0]:
            axes.axvline(part.first - 0.5, color=ALIAS, linewidth=0.8, linestyle=(0, (3, 2)), zorder=1)
        distances = " and ".join(f"{alias.distance:+}" for alias in part.aliases)
        text = f"alias at {distances}" if distances else "no alias"
        axes.text(part.first + 0.5, height, text, va="center", size=7.5, color=ALIAS)


def shade(axes: Axes, parts: Sequence[Stretch], within: float) -> None:
    """Over accuracy by place: the ground is the darker the more aliases are in view, and the smaller their gaps."""
    for part in parts:
        depth = sum(1 - alias.gap / within for alias in part.aliases)
        ends = (part.first - 0.5, part.last + 0.5)
        axes.axvspan(*ends, color=style.SOFT, alpha=min(1.0, 0.35 * depth), linewidth=0, zorder=0)


def _phases(axes: Axes, head: Head, distances: range, aliases: Sequence[Alias], name: str) -> None:
    """A row for each pair, dark where it has the phase of the target; a tick above the target and each alias."""
    phases = np.cos(np.outer(head.frequencies, np.array(distances) + head.back))
    edges = (distances[0] - 0.5, distances[-1] + 0.5, len(phases) - 0.5, -0.5)
    axes.imshow(phases, cmap="Blues", vmin=-1, vmax=1, aspect="auto", interpolation="nearest", extent=edges)
    axes.set_yticks(range(len(phases)), [_period(frequency) for frequency in head.frequencies])
    tick = {"marker": "v", "markersize": 4, "clip_on": False, "linestyle": "none"}
    for distance, hue in [(-head.back, TARGET), *((alias.distance, ALIAS) for alias in aliases)]:
        axes.plot([distance], [1], color=hue, transform=axes.get_xaxis_transform(), **tick)
    axes.set_title(f"{style.plain(name)}: phases", pad=8)
    axes.set_ylabel("period of the pair")


def _period(frequency: float) -> str:
    period = 2 * np.pi / frequency if frequency else np.inf
    return f"{period:,.0f}" if period >= 100 else f"{period:.3g}"


def _score(axes: Axes, head: Head, distances: range, aliases: Sequence[Alias], within: float, name: str) -> None:
    heights = 1 - head.gap(distances)
    axes.axhline(0, color=style.SOFT, linewidth=0.6)
    axes.axhline(1 - within, color=style.SOFT, linewidth=0.6, linestyle=(0, (1, 1.6)))
    axes.plot(distances, heights, color=style.FAINT, linewidth=0.8, zorder=1)
    axes.plot(distances, heights, color=style.INK, marker="o", markersize=1.8, linestyle="none")
    axes.plot([-head.back], [1], color=TARGET, marker="s", markersize=5, linestyle="none")
    for distance, gap in aliases:
        axes.plot([distance], [1 - gap], color=ALIAS, marker="o", markersize=4, linestyle="none")
        above = {"xytext": (0, 4), "textcoords": "offset points", "ha": "center", "size": 7}
        axes.annotate(f"{distance:+}", (distance, 1 - gap), **above)
    axes.set_title(f"{style.plain(name)}: its score", pad=21)
    axes.set(ylabel="score", ylim=(-4, 1.35), yticks=[-4, -2, 0, 1])
    bracket(axes, *head.span, words="distances trained on")
