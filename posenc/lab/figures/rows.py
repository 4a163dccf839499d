"""Figures with a row for each scheme, shared by all columns: dots for runs, or a grid of shares. No jax.

They serve more schemes than lines could separate, because rows are read by their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from posenc.lab.figures import style
from posenc.lab.figures.captions import metric_named, numbers
from posenc.lab.figures.figures import extrapolates, shown
from posenc.lab.figures.floor_lines import NAMES
from posenc.lab.figures.panel_captions import coded, ending
from posenc.lab.figures.panels import COLUMNS, Drawing, bracket, ranged, shape
from posenc.lab.results.floors import best_floor
from posenc.lab.results.learned import SOLVED
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import LEAST, TableCell, by_range, summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DOTS, CELL, ROW = 1.75, 0.14, 0.2
"""The width of a column of dots and of a cell of a grid, beside each other, and the height of a row in inches."""
LETTER = 0.062
"""Inches of a letter of a title."""
NEAR = 0.05
"""Floors closer than this share a name."""


@dataclass(frozen=True)
class Dots:
    """A column of dots: row to the values of its runs."""

    title: str
    along: str
    runs: Mapping[str, Sequence[float]]
    floors: Mapping[str, float] = field(default_factory=dict)
    ends: tuple[float, float] = (0.0, 1.0)
    never: str = ""
    """The name of infinity, where runs have it; it stands at the right end."""

    @property
    def width(self) -> float:
        """Beside other columns."""
        return DOTS


@dataclass(frozen=True)
class Grid:
    """A column of cells: row to place along x to a share, which colour shows."""

    title: str
    along: str
    shares: Mapping[str, Mapping[Any, float]]
    texts: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)
    trained: tuple[int, int] | None = None

    @property
    def places(self) -> list[Any]:
        """The places along x: numbers in their order, names as they are given."""
        along = dict.fromkeys(x for of in self.shares.values() for x in of)
        return [*along] if any(isinstance(x, str) for x in along) else sorted(along)

    @property
    def width(self) -> float:
        """Beside other columns."""
        return (0.36 if self.texts else CELL) * len(self.places) + 0.2


def rows(names: Sequence[str], columns: Sequence[Dots | Grid], most: int = COLUMNS, tall: float = ROW) -> Figure:
    """The figure of some columns, up to `most` beside each other, with the rows of these names from the top down, each
    `tall` inches high."""
    down, across = shape(len(columns), most)
    lines = [columns[k : k + across] for k in range(0, len(columns), across)]
    wide = max(sum(c.width for c in line) for line in lines)
    inch = (style.page_width() - 0.06 * max(map(len, names)) - 0.3) / wide
    with style.canvas(style.PAGE_WIDTH, down * (tall * len(names) + 0.9)) as figure:
        for part, line in zip(np.atleast_1d(figure.subfigures(down, 1)), lines, strict=True):
            ratios = [c.width for c in line]
            each = np.atleast_1d(part.subplots(1, len(line), sharey=True, gridspec_kw={"width_ratios": ratios}))
            for axes, column in zip(each, line, strict=True):
                (_dots if isinstance(column, Dots) else _grid)(axes, names, column)
                letters = int(column.width * inch / LETTER * style.PAGE_WIDTH / style.page_width())
                axes.set_title(style.title(column.title, letters), size=7.5, pad=4 + 8 * max(map(_above, line)))
                axes.set(xlabel=column.along, ylim=(len(names) - 0.4, -0.6))
                axes.set_yticks(range(len(names)), [style.plain(name) for name in names])
                axes.tick_params(axis="y", length=0, labelleft=axes is each[0])
                axes.spines["left"].set_visible(False)
    return figure


def _above(column: Dots | Grid) -> int:
    """The lines of text between a column and its title."""
    return len(_grouped(column.floors)) if isinstance(column, Dots) else 2.4 * bool(column.trained)


def _dots(axes: Axes, names: Sequence[str], column: Dots) -> None:
    """Each run a dot, the median a bar, from six runs on with the interval; floors are vertical lines."""
    low, high = column.ends
    end = high + 0.3 * (high - low)
    place = lambda value: end if np.isinf(value) else value  # noqa: E731
    for row, name in enumerate(names):
        axes.axhline(row, color=style.BAND, linewidth=0.8, zorder=0)
        values = list(column.runs.get(name, ()))
        if not values:
            continue
        dots = {"color": style.HUES["absolute"], "alpha": 0.45, "markersize": 3.6, "markeredgewidth": 0}
        axes.plot([*map(place, values)], [row] * len(values), "o", **dots, clip_on=False, label="_run")
        if len(values) >= LEAST and np.isfinite(values).all():
            s = summary(values)
            axes.plot([s.low, s.high], [row, row], color=style.HUES["absolute"], linewidth=1.4, alpha=0.5)
        middle = float(np.median([*map(place, values)]))
        axes.plot([middle, middle], [row - 0.32, row + 0.32], color=style.INK, linewidth=1.4, label=name, clip_on=False)
    margin = 0.03 * (high - low)
    axes.set_xlim(low - margin, (end if column.never else high) + margin)
    if (low, high) == (0, 1):
        axes.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
    elif column.never:
        axes.set_xticks([low, high, end], [f"{low:g}", f"{high:g}", column.never])
    for k, (heights, words) in enumerate(_grouped(column.floors)):
        for height, name in heights:
            axes.axvline(height, color=style.SOFT, linestyle=(0, (1, 1.6)), linewidth=0.9, zorder=1, label=f"_{name}")
        at = {"xy": (heights[0][0], 1), "xycoords": ("data", "axes fraction"), "xytext": (0, 2 + 8 * k)}
        share = (heights[0][0] - low) / (high - low)
        side = "left" if share < 0.35 else "right" if share > 0.65 else "center"
        axes.annotate(", ".join(words), **at, textcoords="offset points", ha=side, va="bottom", size=6.5,
                      color=style.SOFT, annotation_clip=False)  # fmt: skip


def _grouped(floors: Mapping[str, float]) -> list[tuple[list[tuple[float, str]], list[str]]]:
    """Floors in order, those that are close together under one name."""
    groups: list[tuple[list[tuple[float, str]], list[str]]] = []
    for height, name in sorted((height, name) for name, height in floors.items()):
        if not groups or height - groups[-1][0][0][0] > NEAR:
            groups.append(([], []))
        groups[-1][0].append((height, name))
        groups[-1][1].append(NAMES[name])
    return groups


def _grid(axes: Axes, names: Sequence[str], column: Grid) -> None:
    """Each share a cell, the darker the higher, with its text if it has one."""
    at = column.places
    grid = np.array([[column.shares.get(name, {}).get(x, np.nan) for x in at] for name in names])
    axes.imshow(np.ma.masked_invalid(grid), cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    for (row, k), value in np.ndenumerate(grid):
        if text := column.texts.get(names[row], {}).get(at[k]):
            axes.text(k, row, text, ha="center", va="center", size=6.5, color="white" if value > 0.6 else style.INK)
    step = max(1, -(-len(at) // 8)) if not column.texts else 1
    named = any(isinstance(x, str) for x in at)
    axes.set_xticks(range(0, len(at), step), [x if named else f"{x:g}" for x in at[::step]], rotation=30 * named)
    axes.tick_params(axis="x", length=0)
    axes.spines["bottom"].set_visible(False)
    if column.trained:
        inside = [k for k, x in enumerate(at) if column.trained[0] <= x <= column.trained[1]]
        if inside:
            bracket(axes, inside[0] - 0.4, inside[-1] + 0.4, f"trained on {column.trained[0]}–{column.trained[1]}")


TASKS = 2
BASELINE = "best baseline"
"""The last row of a heat map."""
TEXTS = 0.36
"""Inches of a row whose cells have two lines."""
ABREAST = 6
"""The most tasks beside each other in a heat map; the others stand below."""


def heat(results: Results) -> Drawing:
    """Draw accuracy over the sizes beyond training: a row for each scheme, a column for each task and training range.

    Each cell is the median over runs, with their number. The last row is the best of the task's floors over the same
    sizes. Raises `ValueError` where no longer size was measured.
    """
    cells, words, tasks = shown(results), results.words, results.tasks()
    if not extrapolates(results):
        raise ValueError(
            f"{results.name!r} has no size beyond the training range, which a heat map needs; use --figure length."
        )
    names, groups = words.lines(c.scheme for c in cells), by_range(cells)
    order = [*_ordered(cells, names), BASELINE]
    shares, texts = ({row: {} for row in order} for _ in range(2))
    for (task, trained), group in sorted(groups.items()):
        several = sum(other == task for other, _ in groups) > 1
        place = style.title(words.title(task)) + f"\ntrained on {ranged(*trained)}" * several
        for row in order:
            shares[row][place], texts[row][place] = np.nan, "no\nresult"
        for cell in group:
            s = summary(cell.means(cell.beyond).values())
            shares[names[cell.scheme]][place] = s.median
            texts[names[cell.scheme]][place] = f"{s.median:.2f}\nn={s.n}" if s.n else "no longer\nsize"
        best = best_floor(tasks[task], sorted({n for cell in group for n in cell.beyond}))
        shares[BASELINE][place] = np.nan if best is None else best[1]
        texts[BASELINE][place] = "not\nknown" if best is None else f"{best[1]:.2f}\n{NAMES[best[0]]}"
    runs = numbers(summary(c.means(c.beyond).values()).n for c in cells if c.beyond)
    sentence = (
        "Accuracy over the sizes beyond the training range: each cell is the median over runs of their mean, n ="
        f" {runs}; the last row is the task's best baseline."
    )
    codes = [f"{words.coded(task)}." for task in tasks if words.code(task)]
    text = "\n".join([" ".join([sentence, *codes, coded(results, names)]).strip(), *ending(results)])
    places = [*shares[BASELINE]]
    parts = [places[k : k + ABREAST] for k in range(0, len(places), ABREAST)]
    grids = [Grid("", "", {row: {at: of[at] for at in part} for row, of in shares.items()}, texts) for part in parts]
    return Drawing(rows(order, grids, 1, TEXTS), text)


def solved_seeds(results: Results) -> Drawing:
    """A row for each scheme, a column for each size, one part for each task and training range."""
    counts = solved_counts(results)
    text = "\n".join([f"{counts.sentence} {coded(results, counts.names)}".strip(), *ending(results)])
    return Drawing(rows(counts.order, counts.grids, TASKS), text)


@dataclass(frozen=True)
class SolvedCounts:
    """How many seeds solve each size: the rows from the top down, a grid for each task, and what they are."""

    order: Sequence[str]
    grids: Sequence[Grid]
    sentence: str
    names: Mapping[str, str]
    """Label of a scheme to the name of its row."""


def solved_counts(results: Results) -> SolvedCounts:
    """Its numbers. Raises `ValueError` where no trial is finished."""
    cells, words = shown(results), results.words
    names = words.lines(c.scheme for c in cells)
    parts, named = [], []
    for (task, trained), group in sorted(by_range(cells).items()):
        solved = {names[c.scheme]: {n: sum(v >= SOLVED for v in of) for n, of in c.values.items()} for c in group}
        n = {names[c.scheme]: {size: len(of) for size, of in c.values.items()} for c in group}
        shares = {row: {size: k / n[row][size] for size, k in of.items()} for row, of in solved.items()}
        texts = {row: {size: f"{k}/{n[row][size]}" for size, k in of.items()} for row, of in solved.items()}
        parts.append(Grid(words.title(task), words.unit(task), shares, texts, trained))
        named.append(f"{words.coded(task)} by {metric_named(group[0].metric)}")
    sentence = f"Seeds of which at least {SOLVED} is right, k of n, at each size: {'; '.join(named)}."
    return SolvedCounts(_ordered(cells, names), parts, sentence, names)


def _ordered(cells: Sequence[TableCell], names: Mapping[str, str]) -> list[str]:
    """The names of all schemes, families together."""
    return [*dict.fromkeys(names[cell.scheme] for cell in sorted(cells, key=lambda c: (c.family, c.scheme)))]
