"""Steps by hand as a figure: every matrix with its numbers in its cells, darker where they are larger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from posenc.lab.explain.steps import Matrix, Sheet
from posenc.lab.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELL, LINE, SIDE = 0.62, 0.3, 0.55
"""Inches: a cell's width and height, and room for the names of rows."""
ACROSS = 9.0


def draw(sheet: Sheet) -> Figure:
    """A sheet as a page: a line of matrices for each step, the followed row framed, changed numbers in colour."""
    lines = [(step, line) for step in sheet.steps for line in _lines(step.matrices)]
    heights = [LINE * (2.6 + max(len(m.values) + bool(m.columns) for m in line)) for _, line in lines]
    tall = sum(heights) + 0.6
    with style.canvas(ACROSS, tall, layout=None) as figure:
        figure.text(0.2 / ACROSS, 1 - 0.3 / tall, style.plain(sheet.title), size=11, weight="bold", color=style.INK)
        top, before = 0.6, None
        for (step, line), height in zip(lines, heights, strict=True):
            if step is not before:
                name = f"{sheet.steps.index(step) + 1}. {step.title}" + (f"   ◄ {step.by}" if step.by else "")
                figure.text(0.2 / ACROSS, 1 - (top + 0.12) / tall, style.plain(name), size=9, color=style.INK)
            before, left = step, 0.2
            for matrix in line:
                room = SIDE * bool(matrix.rows)
                rows, columns = matrix.values.shape
                upper = top + LINE * (1.8 + bool(matrix.columns))
                place = [(left + room), tall - upper - LINE * rows, CELL * columns, LINE * rows]
                sized = (place[0] / ACROSS, place[1] / tall, place[2] / ACROSS, place[3] / tall)
                _matrix(figure.add_axes(sized), matrix, sheet.blank and not matrix.given)
                left += room + CELL * columns + 0.3
            top += height
    return figure


def _lines(matrices: tuple[Matrix, ...]) -> list[list[Matrix]]:
    """Matrices side by side while they fit."""
    lines: list[list[Matrix]] = []
    used = ACROSS
    for matrix in matrices:
        width = SIDE * bool(matrix.rows) + CELL * matrix.values.shape[1] + 0.3
        if used + width > ACROSS - 0.2:
            lines.append([])
            used = 0.0
        lines[-1].append(matrix)
        used += width
    return lines


def _matrix(axes: Any, matrix: Matrix, empty: bool) -> None:
    from matplotlib.patches import Rectangle

    rows, columns = matrix.values.shape
    shade = np.where(np.isfinite(matrix.values), matrix.values, np.nan)
    span = np.nanmax(np.abs(shade), initial=0.0) or 1.0
    axes.imshow(np.zeros_like(shade) if empty else shade / span, cmap="Blues", vmin=0, vmax=2.5, aspect="auto")
    for i, (line, new) in enumerate(zip(matrix.cells(), matrix.changed, strict=True)):
        for j, (text, changed) in enumerate(zip(line, new, strict=True)):
            colour, weight = (style.HUES["context"], "bold") if changed else (style.INK, "normal")
            axes.text(j, i, "" if empty else text, ha="center", va="center", size=7, color=colour, weight=weight)
    for i in matrix.marked:
        frame = Rectangle((-0.5, i - 0.5), columns, 1, fill=False, edgecolor=style.INK, linewidth=1.2, zorder=3)
        axes.add_patch(frame).set_clip_on(False)
    axes.set_title(style.plain(matrix.label), size=7.5, weight="normal", pad=15 if matrix.columns else 3)
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(matrix.columns)), matrix.columns, size=7)
    axes.set_yticks(range(len(matrix.rows)), matrix.rows, size=7)
    axes.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white" if not empty else style.SOFT, linewidth=0.7)
    axes.tick_params(which="both", length=0)
