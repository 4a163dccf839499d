"""Steps by hand as one HTML page, which loads nothing."""

from __future__ import annotations

from collections.abc import Sequence

from posenc.lab.explain.steps import Sheet
from posenc.lab.figures.pages import filled


def page(sheets: Sequence[Sheet]) -> str:
    """Write a page of one or more sheets; each starts a new page in print."""
    return filled("sheet.html", sheets=sheets)
