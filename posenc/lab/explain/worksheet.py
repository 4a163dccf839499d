"""Steps by hand as text, HTML and JSON: numbers for a reader, or boxes for a pencil."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from posenc.lab.explain.steps import Matrix, Sheet, Step
from posenc.lab.figures.pages import filled

WIDE, GAP, BOX = 100, "    ", "[      ]"


def as_text(sheet: Sheet) -> str:
    """A sheet as lines of text. An arrow marks the followed row, a star each number that the scheme changed."""
    head = [f"{sheet.title}: {'worksheet' if sheet.blank else 'by hand, step by step'}."]
    head += [sheet.about] if sheet.about else []
    if any(m.changed.any() for step in sheet.steps for m in step.matrices) and not sheet.blank:
        head.append("A star marks a number that the scheme changed; `without` shows the number without the scheme.")
    path = [sheet.path] if sheet.path else []
    return "\n\n".join(["\n".join(head), *path, *(_step(n, s, sheet.blank) for n, s in enumerate(sheet.steps, 1))])


def as_html(sheets: Sequence[Sheet]) -> str:
    """Write sheets as one HTML page, which loads nothing; each starts a new page in print."""
    return filled("sheet.html", sheets=sheets)


def as_json(sheet: Sheet) -> dict[str, Any]:
    """A sheet as plain values; the numbers that a worksheet leaves open are null."""
    steps = []
    for step in sheet.steps:
        matrices = []
        for m in step.matrices:
            values = None if sheet.blank and not m.printed else _plain(m.values)
            without = None if sheet.blank or m.without is None else _plain(m.without)
            labels = {"rows": list(m.rows), "columns": list(m.columns), "marked": list(m.marked)}
            matrices.append({"label": m.label, **labels, "values": values, "without": without})
        working = [] if sheet.blank else list(step.working)
        heading = {"name": step.name, "title": step.title, "note": step.note, "by": step.by}
        steps.append({**heading, "working": working, "matrices": matrices})
    return {"title": sheet.title, "about": sheet.about, "blank": sheet.blank, "steps": steps}


def _plain(values: np.ndarray) -> list[list[float | None]]:
    """Numbers rounded to 10 digits; null for infinity and NaN."""
    return [[round(v, 10) + 0.0 if math.isfinite(v) else None for v in row] for row in values.tolist()]


def _step(n: int, step: Step, blank: bool) -> str:
    by = f"   ◄ {step.by}" if step.by else ""
    lines = [f"{n}. {step.title}{by}"]
    lines += [f"   {step.note}"] if step.note else []
    lines += [f"   {line}" for line in step.working] if not blank else []
    return "\n".join([*lines, "", *_beside([_compared(matrix, blank) for matrix in step.matrices])])


def _compared(matrix: Matrix, blank: bool) -> list[str]:
    """A matrix beside the same matrix without the scheme, in one block."""
    if blank or matrix.without is None or not matrix.changed.any():
        return block(matrix, blank)
    return _joined([block(matrix, False), block(Matrix("without", matrix.without, columns=matrix.columns), False)])


def block(matrix: Matrix, blank: bool) -> list[str]:
    """The lines of one matrix under its label."""
    empty = blank and not matrix.printed
    stars = bool(matrix.changed.any()) and not empty
    shown = [
        [BOX if empty else c + ("*" if star else " " * stars) for c, star in zip(row, changed, strict=True)]
        for row, changed in zip(matrix.cells(), matrix.changed, strict=True)
    ]
    names = [*matrix.rows] or [""] * len(shown)
    if matrix.columns:
        shown.insert(0, [c + " " * stars for c in matrix.columns])
        names.insert(0, "")
    width = max(len(c) for row in shown for c in row)
    side = max(map(len, names))
    marks = {i + bool(matrix.columns) for i in matrix.marked}
    lines = []
    for i, (name, row) in enumerate(zip(names, shown, strict=True)):
        arrow = ("► " if i in marks else "  ") if matrix.marked else ""
        lines.append(
            f"{arrow}{name.ljust(side)}{'  ' if side else ''}{'  '.join(c.rjust(width) for c in row)}".rstrip()
        )
    return [matrix.label, *lines]


def _beside(blocks: list[list[str]]) -> list[str]:
    """Matrices side by side while they fit, then below one another."""
    lines: list[str] = []
    row: list[list[str]] = []
    for matrix in [*blocks, None]:
        widths = [max(map(len, b)) for b in [*row, matrix or []] if b]
        if matrix is not None and (not row or sum(widths) + len(GAP) * (len(widths) + 1) <= WIDE):
            row.append(matrix)
            continue
        lines += [""] * bool(lines) + [f"   {line}" for line in _joined(row)]
        row = [matrix] if matrix is not None else []
    return lines


def _joined(blocks: list[list[str]]) -> list[str]:
    """Blocks of lines side by side."""
    widths, height = [max(map(len, b)) for b in blocks], max(map(len, blocks))
    filled = (
        [*(line.ljust(w) for line in b), *[" " * w] * (height - len(b))] for b, w in zip(blocks, widths, strict=True)
    )
    return [GAP.join(parts).rstrip() for parts in zip(*filled, strict=True)]
