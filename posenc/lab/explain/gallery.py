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
"""Tokens, a square number so that schemes of a plane show their rows; panels in a row; the size of random changes to
the parameters of schemes that have no effect before training."""


ABOUT = f"What each scheme does to {LENGTH} tokens: queries down, keys along, light where low"


class SchemePanel(NamedTuple):
    """One scheme's matrix."""

    name: str
    family: str
    view: induced.View | None
    moved: bool
    """Whether the initial parameters had no effect and were changed at random."""


def panels() -> list[SchemePanel]:
    """A panel for each scheme, families together."""
    names = sorted(posenc.names(), key=lambda name: (SCHEMES.find(name).family, name))
    return [_panel(name) for name in names]


def _panel(name: str) -> SchemePanel:
    for moved in (0.0, MOVED):
        if found := induced.views(name, LENGTH, causal=True, moved=moved):
            matrices = [view for view in found if len(view.matrix) > 1]
            return SchemePanel(name, SCHEMES.find(name).family, (matrices or found)[0], bool(moved))
    return SchemePanel(name, SCHEMES.find(name).family, None, False)


def draw(shown: list[SchemePanel]) -> Figure:
    """All panels on one page, each with its name and colour scale; a star where parameters were moved."""
    style.need_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    rows = math.ceil(len(shown) / COLUMNS)
    with matplotlib.rc_context(style.RC):
        figure = Figure(figsize=(COLUMNS * 1.15, rows * 1.35 + 0.5), layout="constrained")
        for axes in (grid := figure.subplots(rows, COLUMNS, squeeze=False)).flat:
            axes.set_axis_off()
        looks = style.looks((panel.name, panel.family) for panel in shown)
        for axes, panel in zip(grid.flat, shown, strict=False):
            _fill(axes, panel, looks[panel.name].colour)
        figure.suptitle(ABOUT, size=9)
    return figure


def _fill(axes, panel: SchemePanel, colour: str) -> None:
    axes.set_title(panel.name + "*" * panel.moved, size=6, color=colour, pad=2)
    if panel.view is None:
        axes.text(0.5, 0.5, "nothing in\nthe scores", ha="center", va="center", size=6, transform=axes.transAxes)
        return
    matrix = panel.view.matrix
    if len(matrix) > 1:
        axes.imshow(matrix, cmap="Blues")
    else:
        axes.plot(np.arange(matrix.shape[1]), matrix[0], linewidth=0.8)
    axes.set_axis_on()
    axes.set(xticks=[], yticks=[])
