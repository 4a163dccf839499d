"""A figure in the size and the fonts of a conference's paper: `fit(figure, "icml", "column")`.

Widths and font sizes are those of tueplots' bundles; ACL has none, so its widths are those of its style files (a page
of 16 cm with columns of 7.7 cm). Font sizes of the figure change in proportion, and panels move to as many columns as
fit. The numbers drawn do not change.
"""

from __future__ import annotations

import importlib.util
import math
import textwrap
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from posenc.lab.figures import style
from posenc.lab.figures.floor_lines import settle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

VENUES = ("neurips", "icml", "iclr", "acl")
WIDTHS = ("column", "text")
SERIF = ("Times New Roman", "Times", "TeX Gyre Termes", "Nimbus Roman", "STIXGeneral")
"""Fonts of papers, the best first; the last comes with matplotlib."""
CENTIMETRE = 1 / 2.54
PANEL = 1.75
"""The smallest width of a panel in inches that still has room for its axis."""
TALL = 0.72
"""The height of a panel, as a share of its width."""
ROW = 2.0
"""The smallest height of a row of panels in inches, with its titles and labels."""
NARROW = 0.7
"""The least width in inches that names may leave a panel."""
LEAST = 5.0
"""The smallest font size in points."""


@dataclass(frozen=True)
class Page:
    """Inches of one width of a venue, and the font size of its figures in points."""

    width: float
    font: float


def page(venue: str, width: str) -> Page:
    """The page of a venue. In a venue of one column, `column` and `text` are the same width."""
    if importlib.util.find_spec("tueplots") is None:
        raise ValueError("--venue needs tueplots; pip install 'posenc[plot]'.")
    from tueplots import bundles

    if venue == "acl":
        return Page({"column": 7.7, "text": 16.0}[width] * CENTIMETRE, 8.0)
    column = {"column": {"column": "half"}, "text": {"column": "full"}}[width] if venue == "icml" else {}
    makers = {"neurips": bundles.neurips2024, "icml": bundles.icml2024, "iclr": bundles.iclr2024}
    settings = makers[venue](usetex=False, **column)
    return Page(float(settings["figure.figsize"][0]), float(settings["legend.fontsize"]) + 1)


def fit(figure: Figure, venue: str, width: str) -> None:
    """Change a figure to the size and the fonts of a venue."""
    from matplotlib.text import Text

    made = page(venue, width)
    before = figure.get_figwidth()
    family, scale = _serif(), made.font / style.RC["axes.titlesize"]
    for text in figure.findobj(Text):
        text.set_fontfamily(family)
        text.set_fontsize(max(LEAST, min(text.get_fontsize() * scale, made.font)))
    if figure.subfigs:  # of rows, which keep their height
        figure.set_size_inches(made.width, figure.get_figheight() * scale)
        figure.draw_without_rendering()
        for axes in figure.axes:
            _rewrap(axes, axes.get_window_extent().width / figure.dpi)
        _check_room(figure, figure.axes, made, venue, width)
        for axes in figure.axes:
            _thin(axes)
        return
    panels = [axes for axes in figure.axes if axes.get_subplotspec() is not None]
    rows, columns, height = _arranged(panels, made.width, figure.get_figheight() / before)
    names = max(len(axes.get_yticks()) for axes in panels) if panels else 0
    height = max(height, 0.6 + 1.35 * names * made.font / 72)  # names along y need a line each
    legend = _legend(figure, made)
    figure.set_size_inches(made.width, rows * height + legend)
    for axes in panels:
        _rewrap(axes, made.width / columns)
    _check_room(figure, panels, made, venue, width)
    for axes in panels:
        _thin(axes)
    settle(figure)


def _check_room(figure: Figure, panels: list[Axes], made: Page, venue: str, width: str) -> None:
    """Raise an error if names leave the panels no room."""
    if not _has_room(figure, panels):
        wider = "use --width text" if made.width < page(venue, "text").width else "choose fewer schemes"
        raise ValueError(f"Names leave no room for this figure in the {made.width:.1f} inches of a {width}; {wider}.")


def _has_room(figure: Figure, panels: list[Axes]) -> bool:
    """Lay a figure out; whether names leave its panels some width."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "constrained_layout not applied")
        try:
            figure.draw_without_rendering()
        except UserWarning:
            return False
    return all(axes.get_window_extent().width >= NARROW * figure.dpi for axes in panels)


def _arranged(panels: list[Axes], width: float, shape: float) -> tuple[int, int, float]:
    """Rows, columns and the height of a row, after the panels moved to as many columns as fit; `shape` is height by
    width of the whole figure before."""
    from matplotlib.gridspec import GridSpec

    specs = [axes.get_subplotspec() for axes in panels]
    old = max((spec.colspan.stop for spec in specs), default=1)
    simple = all(len(spec.rowspan) == len(spec.colspan) == 1 for spec in specs)
    columns = min(old, max(1, int(width / PANEL)))
    if columns == old or not simple or len(panels) == 1:
        rows = max((spec.rowspan.stop for spec in specs), default=1)
        return rows, old, max(width / old * TALL if len(panels) > 1 else width * min(shape, TALL), ROW)
    rows = math.ceil(len(panels) / columns)
    grid = GridSpec(rows, columns, figure=panels[0].figure)
    for n, axes in enumerate(panels):
        axes.set_subplotspec(grid[divmod(n, columns)])
        if n % columns == 0:
            axes.tick_params(labelleft=True)
            axes.set_ylabel(next((p.get_ylabel() for p in panels[n::-1] if p.get_ylabel()), ""))
    return rows, columns, max(width / columns * TALL, ROW)


def _legend(figure: Figure, made: Page) -> float:
    """Make the legend anew, below all panels in as many columns as fit; returns its height in inches."""
    import matplotlib

    if not figure.legends:
        return 0.0
    old = figure.legends[0]
    font, before = old.get_texts()[0].get_fontproperties(), style.by_columns(len(old.get_texts()), old._ncols)
    points, texts = font.get_size_in_points(), [text.get_text() for text in old.get_texts()]
    names, handles = ([of[before.index(k)] for k in range(len(of))] for of in (texts, old.legend_handles))
    for columns in range(len(names), 0, -1):
        figure.legends[0].remove()
        even = math.ceil(len(names) / math.ceil(len(names) / columns))
        order = style.by_columns(len(names), even)
        entries = [handles[k] for k in order], [names[k] for k in order]
        with matplotlib.rc_context(style.RC):
            new = figure.legend(*entries, loc="outside lower center", ncols=even, prop=font)
        figure.draw_without_rendering()
        if new.get_window_extent().width <= made.width * figure.dpi:
            break
    return math.ceil(len(names) / even) * 1.6 * points / 72 + 0.1


def _rewrap(axes: Axes, width: float) -> None:
    """Break the title of a panel where its new width ends."""
    from matplotlib.text import Text

    for side in ("left", "center", "right"):
        if title := axes.get_title(side):
            letters = int(width * 0.85 / (0.52 * style.RC["axes.titlesize"] / 72))
            lines = textwrap.fill(" ".join(title.split()), max(10, letters), break_on_hyphens=False)
            shown = next(text for text in axes.findobj(Text) if text.get_text() == title)
            shown.set_text(lines)


def _thin(axes: Axes) -> None:
    """Drop ticks along x whose labels would touch the one before."""
    upright = not any(label.get_rotation() for label in axes.get_xticklabels())
    labels = sorted(axes.get_xticklabels(), key=lambda label: label.get_position()[0])
    inside = [label for label in labels if label.get_text() and _within(axes, label)]
    kept: list[Text] = []
    for label in inside:
        if not kept or kept[-1].get_window_extent().x1 + 2 < label.get_window_extent().x0:
            kept.append(label)
    if upright and len(kept) < len(inside):
        axes.set_xticks([label.get_position()[0] for label in kept], [label.get_text() for label in kept])


def _within(axes: Axes, label: Text) -> bool:
    box = label.get_window_extent()
    return bool(axes.bbox.x0 - 1 <= (box.x0 + box.x1) / 2 <= axes.bbox.x1 + 1)


def _serif() -> Any:
    """The first font of papers that this machine has."""
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    return next(name for name in SERIF if name in installed)
