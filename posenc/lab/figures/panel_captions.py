"""Captions of figures that experiments draw themselves, computed from the numbers in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from posenc.lab.figures.captions import FLOORS, SHARED, counts, forced, listed, numbers, rates, sizes, spreads
from posenc.lab.figures.panels import Floors, Panel, Points
from posenc.lab.figures.style import plain
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import cells, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def caption(results: Results, shown: Sequence[Panel], *, log: bool = False, every_rate: bool = False) -> str:
    """Each panel, then the marks, the tasks trained, the trials by outcome and how rates were chosen."""
    drawn = any(panel.floors for panel in shown)
    spread = spreads(values for panel in shown for of in panel.points.values() for values in of.values())
    marks = f"Points are single runs, lines their medians, bands {spread}{'; dotted lines are the floors' * drawn}."
    return "\n".join([*(_panel(panel, log) for panel in shown), marks, *ending(results, every_rate=every_rate)])


def foreign(figure: Figure, results: Results) -> str:
    """The caption of a figure that comes without one: only its titles and axes are known."""
    titled = [(next(filter(None, map(axes.get_title, ("left", "center", "right"))), ""), axes) for axes in figure.axes]
    named = [axes_named(title, axes.get_ylabel(), axes.get_xlabel()) for title, axes in titled if axes.get_xlabel()]
    runs = numbers(c.n for c in cells(results) if c.n)
    return "\n".join([*(f"{one}." for one in named), f"n = {runs} runs of each scheme.", *ending(results)])


def axes_named(title: str, up: str, along: str, log: str = "") -> str:
    """The title of a panel, its vertical and its horizontal axis."""
    return f"{plain(title)}{': ' if title else ''}{plain(up)} (up) against {plain(along)} (along{log})"


def medians(points: Points) -> str:
    """The medians at both ends of a panel, highest first; schemes with the same median share a number."""
    along = sorted({x for of in points.values() for x in of})
    ends = []
    for x in dict.fromkeys((along[0], along[-1])):
        alike: dict[str, list[str]] = {}
        for scheme, of in points.items():
            if x in of:
                alike.setdefault(f"{summary(of[x]).median:.2f}", []).append(scheme)
        groups = [f"{value} {listed(sorted(alike[value]))}" for value in sorted(alike, key=float, reverse=True)]
        ends.append(f"Medians at {x:g}: {'; '.join(groups)}.")
    return " ".join(ends)


def floors_named(known: Floors) -> str:
    """Each floor, with its smallest and its largest value along x."""
    named = []
    for name, words in FLOORS.items():
        found = sorted({f"{at[name]:.2f}" for at in known.values() if name in at}, key=float)
        if found:
            named.append(f"{' to '.join(dict.fromkeys((found[0], found[-1])))} by {words}")
    return f"Floors: {', '.join(named)}." if named else "Floors: unknown."


def ending(results: Results, *, every_rate: bool = False) -> list[str]:
    """The tasks trained, the shared test set, the trials by outcome, and how rates were chosen."""
    found = cells(results)
    ranges: dict[tuple[int, int], list[str]] = {}
    for task, trained in sorted({(c.task, c.trained) for c in found}):
        ranges.setdefault(trained, []).append(task)
    tasks = [f"{listed(names)}, trained on {sizes(*trained)}" for trained, names in ranges.items()]
    how = ["Every learning rate tried is drawn; none was chosen."] if every_rate else rates(found)
    return [f"Tasks: {'; '.join(tasks)}.", f"{SHARED}.", *forced(found), counts(found, results.unreadable), *how]


def runs_named(every: Iterable[Mapping[Any, Sequence[float]]]) -> str:
    """The number of runs behind each point of a line."""
    return f"n = {numbers(len(values) for of in every for values in of.values())} runs"


def _panel(panel: Panel, log: bool) -> str:
    head = axes_named(panel.title, panel.up, panel.along, ", on a log axis" if log else "")
    floors = "Not an accuracy, so without floors." if panel.floors is None else floors_named(panel.floors)
    parts = [f"{head}, {runs_named(panel.points.values())}.", panel.about, medians(panel.points), floors]
    return " ".join(filter(None, parts))
