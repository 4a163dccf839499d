"""Every scheme on one page: the matrix that each induces, as `posenc explain` shows it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import posenc
from posenc.core.scheme import SCHEMES
from posenc.lab.explain import induced
from posenc.lab.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LENGTH, COLUMNS, MOVED = 25, 8, 0.5
"""Three numbers of the gallery. It has `LENGTH` tokens, a square number so that schemes of a plane show their rows, and
`COLUMNS` panels in a row. Parameters without effect before training are changed at random, by about `MOVED`."""


AS = {
    "rerope": "rerope(window=5)",
    "self_extend": "self_extend(group=4, window=6)",
    "llama4": "llama4(strength=0.5, floor=3)",
    "dape": "alibi + dape",
    "key_weight": "key_weight(form='plain')",
}
"""The text that shows a scheme whose own settings show nothing in so few tokens."""
SCALED = frozenset({"dape"})
"""The scalable schemes whose parameters have to be moved too."""
ABOUT = f"What each scheme does to {LENGTH} tokens: queries down, keys along, light where low"
NOTES = (
    "* parameters moved at random, since the first ones have no effect. A curve is the size of a query's scores by its"
    " position, relative to no scheme.\nBelow a panel: the settings shown, where the usual ones show nothing in"
    f" {LENGTH} tokens."
)


class SchemePanel(NamedTuple):
    """One scheme's matrix."""

    name: str
    family: str
    view: induced.View | None
    moved: bool
    """True if the initial parameters had no effect and were changed at random."""


def panels() -> list[SchemePanel]:
    """A panel for each scheme, families together."""
    names = sorted(posenc.names(), key=lambda name: (SCHEMES.find(name).family, name))
    return [_panel(name) for name in names]


def _panel(name: str) -> SchemePanel:
    for moved in (MOVED,) if name in SCALED else (0.0, MOVED):
        if views := induced.views(AS.get(name, name), LENGTH, causal=True, moved=moved):
            matrices = [view for view in views if len(view.matrix) > 1]
            return SchemePanel(name, SCHEMES.find(name).family, (matrices or views)[0], bool(moved))
    return SchemePanel(name, SCHEMES.find(name).family, None, False)


def draw(shown: list[SchemePanel]) -> Figure:
    """All panels on one page, each with its name in the hue of its family; a star where parameters were moved."""
    rows = math.ceil(len(shown) / COLUMNS)
    with style.canvas(COLUMNS * 1.15, rows * 1.4 + 0.9) as figure:
        from matplotlib.patches import Patch

        for axes in (grid := figure.subplots(rows, COLUMNS, squeeze=False)).flat:
            axes.set_axis_off()
        hues = style.family_hues({panel.family for panel in shown})
        for axes, panel in zip(grid.flat, shown, strict=False):
            _fill(axes, panel, hues[panel.family])
        key = [Patch(color=hues[family], label=family) for family in dict.fromkeys(panel.family for panel in shown)]
        figure.legend(handles=key, loc="outside lower center", ncols=len(key), fontsize=6.5, handlelength=1)
        figure.suptitle(f"{ABOUT}\n\n", size=9)
        figure.text(0.5, 0.992, f"\n\n{NOTES}", ha="center", va="top", size=6, color=style.SOFT)
    return figure


def draw_one(panel: SchemePanel) -> Figure:
    """Draw one panel without its name, in a square of its own."""
    with style.canvas(1.4, 1.4) as figure:
        axes = figure.subplots()
        axes.set_axis_off()
        _fill(axes, panel, "")
    return figure


def _fill(axes, panel: SchemePanel, colour: str) -> None:
    """Fill axes with a panel, under its name where it has a hue."""
    if colour:
        axes.set_title(panel.name + "*" * panel.moved, size=6, color=colour, pad=2, loc="center")
    if panel.view is None:
        axes.text(0.5, 0.5, "nothing in\nthe scores", ha="center", va="center", size=6, transform=axes.transAxes)
        return
    matrix = panel.view.matrix
    axes.set_axis_on()
    if len(matrix) > 1:
        axes.imshow(matrix, cmap="Blues")
        axes.set(xticks=[], yticks=[])
    else:
        axes.plot(np.arange(matrix.shape[1]), matrix[0], linewidth=0.8)
        ends = [float(np.nanmin(matrix)), float(np.nanmax(matrix))]
        axes.set_yticks(ends, [f"{end:.2g}" for end in ends], size=5)
        axes.set_xticks([0, matrix.shape[1] - 1], ["0", f"{matrix.shape[1] - 1}"], size=5)
        axes.tick_params(length=1.5, pad=1)
    if panel.name in AS:
        axes.set_xlabel(AS[panel.name].partition("(")[2].rstrip(")") or AS[panel.name], size=5, labelpad=1)
