"""The page of a conference's paper, which figures are drawn for: `with drawn_for("icml", "column")`.

Widths and font sizes are those of tueplots' bundles; ACL has none, so its widths are those of its style files (a page
of 16 cm with columns of 7.7 cm). Panels stand in as many columns as fit. The numbers drawn do not change.
"""

from __future__ import annotations

import contextlib
import importlib.util
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from posenc.lab.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERIF = ("Times New Roman", "Times", "TeX Gyre Termes", "Nimbus Roman", "STIXGeneral")
"""Fonts of papers, the best first; the last comes with matplotlib."""
CENTIMETRE = 1 / 2.54
NARROW = 0.7
"""The least width in inches that names may leave a panel."""


def page(venue: str, width: str) -> style.Page:
    """Return the page of a venue. In a venue of one column, `column` and `text` are the same width."""
    if importlib.util.find_spec("tueplots") is None:
        raise ValueError("--venue needs tueplots; pip install 'posenc[plot]'.")
    from matplotlib import font_manager
    from tueplots import bundles

    family = next(name for name in SERIF if name in {*font_manager.get_font_names()})
    if venue == "acl":
        return style.Page({"column": 7.7, "text": 16.0}[width] * CENTIMETRE, 8.0, family)
    column = {"column": {"column": "half"}, "text": {"column": "full"}}[width] if venue == "icml" else {}
    makers = {"neurips": bundles.neurips2024, "icml": bundles.icml2024, "iclr": bundles.iclr2024}
    settings = makers[venue](usetex=False, **column)
    return style.Page(float(settings["figure.figsize"][0]), float(settings["legend.fontsize"]) + 1, family)


@contextlib.contextmanager
def drawn_for(venue: str, width: str) -> Iterator[None]:
    """Draw all figures within for a venue."""
    token = style.PAGE.set(page(venue, width))
    try:
        yield
    finally:
        style.PAGE.reset(token)


def check_room(figure: Figure, width: str) -> None:
    """Raise `ValueError` if names leave the panels of a figure for a venue no room."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "constrained_layout not applied")
        try:
            figure.draw_without_rendering()
            panels = [axes for axes in figure.axes if axes.get_subplotspec() is not None]
            fits = all(axes.get_window_extent().width >= NARROW * figure.dpi for axes in panels)
        except UserWarning:
            fits = False
    if not fits:
        instead = "use --width text" if width == "column" else "choose fewer schemes"
        inches = figure.get_figwidth()
        raise ValueError(f"Names leave no room for this figure in the {inches:.1f} inches of a {width}; {instead}.")
