"""A table of abilities: schemes by what they carry beyond the lengths trained on, each number from a record. No jax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from posenc.lab.figures import style
from posenc.lab.results.floors import best_floor
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import HOLDS, TableCell, cells, summary
from posenc.lab.store.schema import GroupRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = "white to blue: from the best floor to 1 · grey: not learned where trained · –: not run"
"""What the cells are, in short."""
TITLED = 44.0
"""Points from the cells to the title of the table."""


@dataclass(frozen=True)
class Ability:
    """What a column measures: which runs of which record, and at which size."""

    title: str
    record: str
    """The experiment whose record it is."""
    task: str
    model: str
    metric: str
    times: float = 2.0
    """The size is that evaluated which is nearest to so many times the longest trained on."""


@dataclass(frozen=True)
class Column:
    """An ability as a record has it: the runs of each scheme, and the highest floor."""

    ability: Ability
    size: int
    longest: int
    """The longest size trained on."""
    floor: tuple[str, float]
    runs: Mapping[str, TableCell]
    """Scheme to its runs; schemes that were not run have none."""

    def score(self, scheme: str) -> float | None:
        """The median over the runs of a scheme."""
        return median(self.runs[scheme].values[self.size]) if scheme in self.runs else None

    def excess(self, scheme: str) -> float | None:
        """How far that is on the way from the floor to 1; at most 0 at the floor."""
        score, floor = self.score(scheme), self.floor[1]
        return None if score is None else (score - floor) / (1 - floor)

    def learned(self, scheme: str) -> bool:
        """Whether the median is at least 0.9 at each size trained on; if not, a longer one tells nothing."""
        cell = self.runs[scheme]
        return min(median(cell.values[n]) for n in cell.inside) >= HOLDS

    @property
    def heading(self) -> str:
        """The title, and the size where it is not about twice the longest trained on."""
        times = self.size / self.longest
        return self.ability.title if 1.8 <= times <= 2.2 else f"{self.ability.title}\n({times:.1f} L)"


def column(results: Results, ability: Ability, schemes: Mapping[str, Sequence[str]]) -> Column:
    """An ability from the results of its record. `schemes` are the rows, each with the texts that it stands for."""
    texts = {text for of in schemes.values() for text in of}

    def ours(records: Sequence[GroupRecord]) -> tuple[GroupRecord, ...]:
        matching = [r for r in records if r.task.label == ability.task and r.label in texts]
        return tuple(r for r in matching if str(r.run["model"]).partition("(")[0] == ability.model)

    subset = replace(results, records=ours(results.records), tuning=ours(results.tuning), unfinished=(), varied=None)
    subset = subset.shown(ability.metric)
    by_text = {cell.scheme: cell for cell in cells(subset)}
    (task,) = subset.tasks().values()
    size = min(task.floors, key=lambda n: abs(n - ability.times * task.trained[1]))
    floor = best_floor(task, [size]) or ("uniform", 0.0)
    runs = {row: by_text[text] for row, of in schemes.items() for text in of if text in by_text}
    return Column(ability, size, task.trained[1], floor, runs)


def rows(columns: Sequence[Column], schemes: Sequence[str]) -> list[dict[str, Any]]:
    """Every cell with what it rests on, as a CSV has it."""
    made = []
    for col in columns:
        shared = {"record": col.ability.record, "task": col.ability.task, "model": col.ability.model}
        shared |= {"metric": col.ability.metric, "size": col.size, "trained to": col.longest}
        floor = {"floor": round(col.floor[1], 6), "best floor": col.floor[0]}
        for scheme in (scheme for scheme in schemes if scheme in col.runs):
            cell = col.runs[scheme]
            s = summary(cell.values[col.size])
            values = {"n": s.n, "median": s.median, "low": s.low, "high": s.high, "lr": cell.rate}
            row = {**shared, "scheme": scheme, "text": cell.scheme, **values, **floor}
            made.append(row | {"excess": round(col.excess(scheme) or 0.0, 6), "learned": col.learned(scheme)})
    return made


def draw(axes: Axes, columns: Sequence[Column], schemes: Sequence[str], title: str) -> None:
    """The table: a row for each scheme and one of floors; columns of one model stand side by side under its name."""
    across, down = len(columns), len(schemes)
    grid = np.full((down, across), np.nan)
    for (row, k), _ in np.ndenumerate(grid):
        col, scheme = columns[k], schemes[row]
        score, excess = col.score(scheme), col.excess(scheme)
        text, colour = "–", style.SOFT
        if score is not None and excess is not None:
            text = style.short_share(score)
            if col.learned(scheme):
                grid[row, k] = max(0.0, excess)
                colour = "white" if excess > 0.6 else style.INK
            else:
                axes.fill_between([k - 0.5, k + 0.5], row - 0.5, row + 0.5, color=style.FAINT, linewidth=0)
        axes.text(k, row, text, ha="center", va="center", color=colour)
    axes.imshow(np.ma.masked_invalid(grid), cmap="Blues", vmin=0, vmax=1, aspect="auto", zorder=0.5)
    for k, col in enumerate(columns):
        axes.text(k, down, style.short_share(col.floor[1]), ha="center", va="center", color=style.SOFT)
    _headings(axes, columns)
    _gaps(axes, columns, down)
    axes.set(xlim=(-0.5, across - 0.5), ylim=(down + 0.5, -0.5), xticks=[], xlabel=MARKS)
    axes.set_yticks(range(down + 1), [*schemes, "best floor"])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(title, pad=TITLED)


def _headings(axes: Axes, columns: Sequence[Column]) -> None:
    """The title of each column, and above those of one model its name over a line."""
    from matplotlib.transforms import ScaledTranslation

    place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "annotation_clip": False}
    models = [col.ability.model for col in columns]
    for k, col in enumerate(columns):
        axes.annotate(col.heading, (k, 1), xytext=(0, 3), ha="center", va="bottom", linespacing=1.1, **place)
    above = axes.get_xaxis_transform() + ScaledTranslation(0, 26 / 72, axes.figure.dpi_scale_trans)
    for model in dict.fromkeys(models):
        first, last = models.index(model), len(models) - 1 - models[::-1].index(model)
        axes.annotate(model, ((first + last) / 2, 1), xytext=(0, 28), ha="center", va="bottom", **place)
        axes.plot((first - 0.4, last + 0.4), (1, 1), transform=above, clip_on=False, color=style.SOFT, linewidth=0.8)


def _gaps(axes: Axes, columns: Sequence[Column], down: int) -> None:
    """White lines between cells; wider ones between models and above the floors."""
    for k in range(len(columns) - 1):
        apart = columns[k].ability.model != columns[k + 1].ability.model
        axes.axvline(k + 0.5, color="white", linewidth=4 if apart else 1.2)
    for row in range(down):
        axes.axhline(row + 0.5, color="white", linewidth=1.2)
