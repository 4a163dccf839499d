"""The atlas as one table: rows of schemes by family, columns of probes, in decoders and in encoders. No jax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from posenc.lab.figures import style
from posenc.lab.figures.captions import counts, numbers
from posenc.lab.figures.panels import Drawing
from posenc.lab.results import statistics
from posenc.lab.results.atlas_cells import APART, AtlasCell, atlas_cells, on_probes, placed
from posenc.lab.results.results import Results
from posenc.lab.spec import atlas
from posenc.lab.spec.run import WITH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TABLE = "table"
"""Label of axes whose texts are the data."""

ON_TOP = ("nope", *atlas.RECURRENT)
"""Rows that others are read against."""
HEIGHT, HEAD, FOOT = 0.128, 0.85, 0.2
"""Inches of a row, of the headings and of the line below."""
TITLED_HEAD = 1.8
"""Inches of headings that are titles."""
STAR = " *"
"""Mark of schemes under which RoPE's models are evaluated."""
ABOUT = (
    "Number: how far a scheme holds, in L, the longest size trained on: up to there the median share right is at least"
    " 0.9 at every size. Colour: that share at 2 L, from the best baseline (white) to 1 (blue). Grey: less than 0.9 at"
    " a size trained on, where the least median is the number: not learned, or of a star not kept. Star: the models are"
    " RoPE's, evaluated under this scheme. Hatched: not defined there, or a row of encoders alone. Dot: rates that tie"
    f" in validation differ by {APART:g} or more beyond L. Of text the last token counts, in encoders all"
    " beyond training, of recall and copies every answer."
)


def atlas_drawing(results: Results, rows: Sequence[str] = (), titled: bool = False) -> Drawing:
    """Draw the table of the cells that results have, or of some rows, with how many runs are behind its numbers.

    With `titled` the columns have titles of tasks in place of their short names.
    """
    cells = [cell for cell in atlas_cells(results) if not rows or cell.row in rows]
    table_cells = tuple(cell for of_model in on_probes(results) for cell in _of_rows(of_model, rows))
    runs = f"n = {numbers(cell.n for cell in table_cells)} runs of each scheme and task, at the rates that tie."
    caption = f"{ABOUT}\n{runs} {counts(table_cells)}"
    return Drawing(atlas_table(cells, titled), caption, [vars(cell) for cell in cells])


def _of_rows(results: Results, rows: Sequence[str]) -> list[statistics.TableCell]:
    """The cells of some rows, or of all if none is named."""
    cells, models = statistics.cells(results), results.models()
    return [c for c in cells if not rows or placed(c.scheme, models.get((c.task, c.scheme), ""))[0] in rows]


def atlas_table(cells: Sequence[AtlasCell], titled: bool = False) -> Figure:
    """Draw the table of cells; probes that none of them has have no column."""
    columns = [(m, p) for m in atlas.MODELS for p in atlas.PROBES if any((c.model, c.probe) == (m, p) for c in cells)]
    rows, head = _rows(cells), TITLED_HEAD if titled else HEAD
    with style.canvas(style.PAGE_WIDTH, head + HEIGHT * (len(rows) + 1) + FOOT) as figure:
        axes = figure.subplots(subplot_kw={"label": TABLE, "ylabel": "scheme"})
        _table(axes, {(c.row, c.model, c.probe): c for c in cells}, [*rows], columns)
        _headings(axes, columns, titled)
        _families(axes, [*rows.values()], len(columns))
    return figure


def _rows(cells: Sequence[AtlasCell]) -> dict[str, str]:
    """Row to its family: those that others are read against, then family by family."""
    families = {cell.row: "" if cell.row in ON_TOP else cell.family for cell in cells}
    order = ["", *style.HUES, *sorted(set(families.values()) - set(style.HUES))]
    place = {row: ON_TOP.index(row) if row in ON_TOP else len(ON_TOP) for row in families}
    return dict(sorted(families.items(), key=lambda item: (order.index(item[1]), place[item[0]], item[0])))


def _table(
    axes: Axes,
    cells: Mapping[tuple[str, str, str], AtlasCell],
    rows: Sequence[str],
    columns: Sequence[tuple[str, str]],
) -> None:
    """A line of floors, then a line for each row."""
    import matplotlib

    blues, colours, empty = matplotlib.colormaps["Blues"], {}, []
    for x, (model, probe) in enumerate(columns):
        floor = max(cell.floor for cell in cells.values() if (cell.model, cell.probe) == (model, probe))
        axes.text(x, 0, style.short_share(floor), ha="center", va="center", color=style.SOFT)
        for y, row in enumerate(rows, 1):
            cell = cells.get((row, model, probe))
            if cell is None:
                if not atlas.has_row(row, model):
                    empty.append((x, y))
                continue
            colours[x, y] = blues(cell.above) if cell.learned else style.FAINT
            ink = style.SOFT if not cell.learned else "white" if cell.above > 0.6 else style.INK
            text = f"{cell.reach:.2g}" if cell.reach is not None else style.short_share(cell.trained)
            axes.text(x, y, text, ha="center", va="center", color=ink)
            if cell.learned and cell.rates_apart >= APART:
                axes.plot(x + 0.42, y - 0.32, ".", color=ink, markersize=2)
    _boxes(axes, [*colours], facecolors=[*colours.values()])
    _boxes(axes, empty, facecolors="none", edgecolors=style.FAINT, hatch="////")
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) + 0.5, -0.5), xticks=[])
    names = [row.replace(f"{WITH}rope", STAR) for row in rows]
    axes.set_yticks(range(len(rows) + 1), ["best baseline at 2 L", *names])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _boxes(axes: Axes, centres: Sequence[tuple[int, int]], **looks: Any) -> None:
    """A box of one by one around each centre; all as one collection, since a thousand are slow to draw."""
    from matplotlib.collections import PolyCollection

    corners = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
    boxes = PolyCollection([corners + centre for centre in centres], linewidths=0, **looks)
    axes.add_collection(boxes, autolim=False)


def _headings(axes: Axes, columns: Sequence[tuple[str, str]], titled: bool) -> None:
    """Write the names or titles of the probes, and above those of one model its name over a line."""
    place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "annotation_clip": False}
    for x, (_, probe) in enumerate(columns):
        text = atlas.PROBES[probe].title if titled else probe
        axes.annotate(text, (x, 1), xytext=(0, 3), ha="center", va="bottom", rotation=90, **place)
    models, over = [model for model, _ in columns], 112 if titled else 44
    for model in dict.fromkeys(models):
        first, last = models.index(model), len(models) - 1 - models[::-1].index(model)
        axes.annotate(f"{model}s", ((first + last) / 2, 1), xytext=(0, over), ha="center", va="bottom", **place)
        if first:
            axes.axvline(first - 0.5, color="white", linewidth=4)


def _families(axes: Axes, families: Sequence[str], across: int) -> None:
    """A line above the first row of each family, which is named at its right."""
    for y, family in enumerate(families, 1):
        if y == 1 or family != families[y - 2]:
            axes.axhline(y - 0.5, color="white", linewidth=2.4)
            axes.annotate(
                family, (across - 0.45, y), xycoords="data", va="center", color=style.SOFT, annotation_clip=False
            )
    for x in range(across - 1):
        axes.axvline(x + 0.5, color="white", linewidth=0.8)
