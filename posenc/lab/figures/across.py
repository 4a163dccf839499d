"""Panels of lines through runs, against size or something else: a distance, a learning rate, a position. No jax.

If an axis is an accuracy, its floors are drawn, for the sizes and tasks of its points. More than eight lines make small
multiples: a panel for each, with the others in grey.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from posenc.lab.figures import style
from posenc.lab.figures.floor_lines import floor_lines, reach, settle
from posenc.lab.figures.panel_captions import caption
from posenc.lab.figures.panels import (
    COLUMNS,
    TRAINED,
    Drawing,
    Panel,
    along,
    bracket,
    line,
    lines_of_runs,
    places,
    shape,
    shares,
)
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import TableCell, by_range, cells, summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = len(style.HUES)
"""The most lines in a panel."""
MULTIPLES = 4
"""Small multiples in a row."""
TALL = {1: 2.3, 2: 2.2, 3: 2.0, 4: 1.4}
"""Inches of a row, by the panels in it."""
LETTERS = {1: 80, 2: 48, 3: 32, 4: 25}
"""Letters of a line of a title."""
APART = 0.9
"""Points between bars at one place."""
PANELS = 60
"""The most panels of a figure."""


def across(results: Results, panel: Panel, **options: Any) -> Drawing:
    """One panel: a line through medians for each scheme, with every run or the spread."""
    return panels(results, [panel], **options)


def panels(
    results: Results,
    shown: Sequence[Panel],
    *,
    every_rate: bool = False,
    claimed: bool = False,
    more: str = "",
    most: int = MOST,
    columns: int = COLUMNS,
) -> Drawing:
    """Draw panels side by side, with their caption, of which `more` is a part.

    With `every_rate` the points are runs at every learning rate tried, otherwise at the chosen one. With `claimed` the
    caption says what the results show, which only holds of panels that show all of them. A panel of more lines than
    `most` is small multiples; others stand in up to this many columns.
    """
    style.need_matplotlib()
    labels = dict.fromkeys(s for panel in shown for s in panel.points)
    if not labels:
        raise ValueError(f"{results.name!r} has no finished trial to draw; run it first, or see `posenc status`.")
    names, looks = results.words.lines(labels), looks_of(results, labels, most)
    text = caption(results, shown, names, every_rate=every_rate, claimed=claimed, more=more)
    return Drawing(figure_of(shown, looks, names, most, columns), text)


def figure_of(
    shown: Sequence[Panel],
    looks: Mapping[str, style.Look],
    names: Mapping[str, str],
    most: int = MOST,
    columns: int = COLUMNS,
) -> Figure:
    """Draw panels, above a legend of their lines; of more lines than `most` small multiples."""
    many = max(len(panel.points) for panel in shown) > most
    grid = multiples(shown, names) if many else [*shown]
    if len(grid) > PANELS:
        raise ValueError(f"Lines and tasks would make {len(grid)} panels, more than {PANELS}; use --figure heatmap.")
    in_a_row = MULTIPLES if many else columns
    rows, columns = shape(len(grid), in_a_row)
    below = 0 if many else 0.17 * style.lines(list(names.values()), style.page_width()) + 0.1
    with style.canvas(style.PAGE_WIDTH, TALL[columns] * rows + below) as figure:
        before = None
        for k, (axes, panel) in enumerate(zip(places(figure, len(grid), in_a_row), grid, strict=True)):
            if panel is None:
                axes.remove()
                continue
            draw(axes, panel, looks, columns)
            if k % columns and before is not None and panel.up == before.up:
                axes.set_ylabel("")
            before = panel
        if not many:
            style.legend(figure, {scheme: looks[scheme] for scheme in by_merit(shown)}, names)
        settle(figure)
    return figure


def looks_of(results: Results, schemes: Iterable[str], most: int = MOST) -> dict[str, style.Look]:
    """Scheme to its look, by the families of the results; `most` is as `style.looks` takes it."""
    families = {c.scheme: results.words.family(c.scheme, c.family) for c in cells(results)}
    return style.looks(((scheme, families.get(scheme, "none")) for scheme in schemes), most)


def draw(axes: Axes, panel: Panel, looks: Mapping[str, style.Look], beside: int = 1) -> None:
    """Draw one panel of a row of `beside`, with its axes, its floors and the trained sizes."""
    grey = style.Look(style.FAINT, "", "-", 0.8)
    cut = panel.ends != (0, 1)
    for k, scheme in enumerate(sorted(panel.points, key=list(looks).index)):
        if panel.each:
            lines_of_runs(axes, panel.points[scheme], looks[scheme], scheme, clip_on=cut)
        elif panel.highlighted in (None, scheme):
            offset = APART * (k - (len(panel.points) - 1) / 2) if panel.bars else None
            line(axes, panel.points[scheme], looks[scheme], scheme, offset=offset, clip_on=cut)
        else:
            medians = {x: [summary(values).median] for x, values in panel.points[scheme].items()}
            line(axes, medians, grey, f"_{scheme}", zorder=1)
    along(axes, panel.places, panel.along, panel.log, beside)
    if panel.falling:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda loss, _: f"{loss:g}")
        axes.yaxis.set_minor_formatter(lambda loss, _: f"{loss:g}" if _has_room(axes, loss) else "")
    else:
        shares(axes, panel.ends)
    axes.set_ylabel(panel.up)
    axes.tick_params(length=2.5)
    if panel.floors:
        if panel.falling:
            reach(axes, panel.floors)
        floor_lines(axes, panel.floors)
    if panel.trained:
        bracket(axes, *panel.trained)
    size = {"size": 7} if panel.highlighted else {}
    above = 18 if any(text.get_label() == TRAINED for text in axes.texts) else 6
    axes.set_title(style.title(panel.title, LETTERS[beside]), pad=above, **size)


def _has_room(axes: Axes, loss: float) -> bool:
    """Tell whether a tick between the powers of ten of a log axis has a label. It has one if no power is in view. On an
    axis that is long for its nine ticks, 2, 3 and 5 have one."""
    low, high = axes.get_ylim()
    decade = low > 0 and math.ceil(math.log10(low)) <= math.log10(high)
    return not decade and (high < 2.5 * low or f"{loss:e}"[0] in "235")


def by_merit(shown: Sequence[Panel]) -> list[str]:
    """Return the lines of all panels, the best first. The merit is the mean over panels of the mean median beyond the
    trained sizes, or over all sizes if all were trained."""
    worths: dict[str, list[float]] = {}
    for panel in shown:
        end = panel.trained[1] if panel.trained else -math.inf
        beyond = [x for x in panel.places if x > end] or panel.places
        for scheme, at in panel.points.items():
            medians = [summary(at[x]).median for x in beyond if x in at]
            worth = sum(medians) / len(medians) if medians else 0.0
            worths.setdefault(scheme, []).append(-worth if panel.falling else worth)
    return sorted(worths, key=lambda scheme: (-sum(worths[scheme]) / len(worths[scheme]), scheme))


def fit_in(table_cells: Sequence[TableCell]) -> bool:
    """Tell whether a panel for each task, or for each line of each task with many lines, is few enough."""
    lines = [len(group) for group in by_range(table_cells).values()]
    return max(lines, default=0) <= MOST or sum(lines) <= PANELS


def multiples(shown: Sequence[Panel], names: Mapping[str, str]) -> list[Panel | None]:
    """A panel for each line of each panel, the others in grey; None fills the rest of a row."""
    made: list[Panel | None] = []
    for panel in shown:
        for k, scheme in enumerate(sorted(panel.points, key=lambda s: names[s])):
            title = f"{panel.title}:\n{names[scheme]}" if k == 0 and len(shown) > 1 else names[scheme]
            made.append(replace(panel, highlighted=scheme, title=title))
        made += [None] * (-len(made) % MULTIPLES) * (panel is not shown[-1])
    return made
