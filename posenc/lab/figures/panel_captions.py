"""What a figure of an experiment's own shows, in sentences computed from what is drawn in it."""

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
    """Each panel, then what marks mean, what was trained, how trials ended and how rates were chosen."""
    drawn = any(panel.floors for panel in shown)
    spread = spreads(values for panel in shown for of in panel.points.values() for values in of.values())
    marks = f"Points are single runs, lines their medians, bands {spread}{'; dotted lines are the floors' * drawn}."
    return "\n".join([*(_panel(panel, log) for panel in shown), marks, *ending(results, every_rate=every_rate)])


def foreign(figure: Figure, results: Results) -> str:
    """Of a figure that anyone may have drawn: what its axes say, and nothing that is not known of it."""
    titled = [(next(filter(None, map(axes.get_title, ("left", "center", "right"))), ""), axes) for axes in figure.axes]
    said = [axes_named(title, axes.get_ylabel(), axes.get_xlabel()) for title, axes in titled if axes.get_xlabel()]
    runs = numbers(c.n for c in cells(results) if c.n)
    return "\n".join([*(f"{one}." for one in said), f"n = {runs} runs of each scheme.", *ending(results)])


def axes_named(title: str, up: str, along: str, log: str = "") -> str:
    """What goes up and what lies along in a panel."""
    return f"{plain(title)}{': ' if title else ''}{plain(up)} (up) against {plain(along)} (along{log})"


def medians(points: Points) -> str:
    """The medians at both ends of a panel, highest first; schemes that have the same share a number."""
    along = sorted({x for of in points.values() for x in of})
    said = []
    for x in dict.fromkeys((along[0], along[-1])):
        alike: dict[str, list[str]] = {}
        for scheme, of in points.items():
            if x in of:
                alike.setdefault(f"{summary(of[x]).median:.2f}", []).append(scheme)
        groups = [f"{value} {listed(sorted(alike[value]))}" for value in sorted(alike, key=float, reverse=True)]
        said.append(f"Medians at {x:g}: {'; '.join(groups)}.")
    return " ".join(said)


def floors_named(known: Floors) -> str:
    """Each floor, from the least to the most it is along x."""
    said = []
    for name, words in FLOORS.items():
        found = sorted({f"{at[name]:.2f}" for at in known.values() if name in at}, key=float)
        if found:
            said.append(f"{' to '.join(dict.fromkeys((found[0], found[-1])))} by {words}")
    return f"Floors: {', '.join(said)}." if said else "Its floors are not known."


def ending(results: Results, *, every_rate: bool = False) -> list[str]:
    """What was trained, on what all runs were measured, how trials ended and how their rates were chosen."""
    found = cells(results)
    ranges: dict[tuple[int, int], list[str]] = {}
    for task, trained in sorted({(c.task, c.trained) for c in found}):
        ranges.setdefault(trained, []).append(task)
    said = [f"{listed(names)}, trained on {sizes(*trained)}" for trained, names in ranges.items()]
    how = ["Every learning rate that was tried is drawn; none was chosen."] if every_rate else rates(found)
    return [f"Tasks: {'; '.join(said)}.", f"{SHARED}.", *forced(found), counts(found, results.unreadable), *how]


def runs_named(every: Iterable[Mapping[Any, Sequence[float]]]) -> str:
    """How many runs stand at each place of a line."""
    return f"n = {numbers(len(values) for of in every for values in of.values())} runs"


def _panel(panel: Panel, log: bool) -> str:
    head = axes_named(panel.title, panel.up, panel.along, ", on a log axis" if log else "")
    floors = "It is no accuracy and has no floors." if panel.floors is None else floors_named(panel.floors)
    parts = [f"{head}, {runs_named(panel.points.values())}.", panel.about, medians(panel.points), floors]
    return " ".join(filter(None, parts))
