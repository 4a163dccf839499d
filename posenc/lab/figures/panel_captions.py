"""Captions of figures of panels, computed from the numbers in them, in at most five lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from posenc.lab.figures import claims
from posenc.lab.figures.captions import (
    EXACT,
    FLOORS,
    READERS,
    counts,
    forced,
    models,
    numbers,
    one_rate,
    rate_gaps,
    rates,
    shared,
    spreads,
)
from posenc.lab.figures.floor_lines import NAMES as SHORT
from posenc.lab.figures.panels import Panel
from posenc.lab.figures.style import plain
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import LEAST, cells, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def caption(
    results: Results,
    shown: Sequence[Panel],
    names: Mapping[str, str],
    *,
    every_rate: bool = False,
    claimed: bool = False,
    more: str = "",
) -> str:
    """Describe a drawing: its panels, marks and floors, `more` about it, its models and trials, the rates and the test
    set. With `claimed` it also says what the results show."""
    lines = beginning(results, shown, names, claimed=claimed, more=more)
    return "\n".join([*lines, *ending(results, every_rate=every_rate)])


def beginning(
    results: Results, shown: Sequence[Panel], names: Mapping[str, str], *, claimed: bool = False, more: str = ""
) -> list[str]:
    """The part of a caption that is about its figure alone."""
    lines = [_panels(shown), " ".join(filter(None, [marks(shown), below(shown, names), coded(results, names)]))]
    if claimed:
        more = f"{more} {claims.solved(results, names)} {claims.better(results, names)}".strip()
    return lines + [more] * bool(more)


def plain_caption(results: Results, more: str, names: Mapping[str, str]) -> str:
    """The caption of a figure of rows: its own sentences, the number of runs, the marks, then those of every figure."""
    n = [c.n for c in cells(results) if c.n]
    marks = "Dots are runs, bars their medians"
    marks += ", with the exact 95% interval of the median" * (max(n, default=0) >= LEAST)
    guesses = [f"{SHORT[name]} ({words})" for name, words in FLOORS.items() if name not in READERS]
    dotted = f"; dotted lines are baselines: {', '.join(guesses)}."
    line = f"{marks}{dotted} {coded(results, names)}".strip()
    return "\n".join([f"{more}; n = {numbers(n)} runs.", line, *ending(results)])


def foreign(figure: Figure, results: Results) -> str:
    """The caption of a figure that comes without one: only its titles and axes are known."""
    titled = [(next(filter(None, map(axes.get_title, ("left", "center", "right"))), ""), axes) for axes in figure.axes]
    named = [axes_named(title, axes.get_ylabel(), axes.get_xlabel()) for title, axes in titled if axes.get_xlabel()]
    runs = numbers(c.n for c in cells(results) if c.n)
    return "\n".join([" ".join(f"{name}." for name in named), f"n = {runs} runs of each scheme.", *ending(results)])


def axes_named(title: str, up: str, along: str, log: str = "", subject: str = "") -> str:
    """The title of a panel and what it is, its vertical and its horizontal axis."""
    head = f"{plain(title)}{f' ({plain(subject)})' if subject else ''}".strip()
    return f"{head}{': ' if head else ''}{plain(up)} (up) against {plain(along)} (along{log})"


def marks(shown: Sequence[Panel]) -> str:
    """Describe lines, bands and dots."""
    groups = [values for panel in shown for of in panel.points.values() for values in of.values()]
    few, many = (any(test(len(values)) for values in groups) for test in (lambda n: n < LEAST, lambda n: n >= LEAST))
    if all(panel.each for panel in shown):
        return f"Lines are single runs{floors_named(shown)}."
    more = "Thick lines are medians of runs"
    if few and any(len(values) > 1 for values in groups):
        more += ", thin lines single runs" + f" where n < {LEAST}" * many
    if many:
        mark = "bars" if all(panel.bars for panel in shown) else "bands"
        more += f", {mark} {spreads(v for v in groups if len(v) >= LEAST)}"
    return f"{more}{floors_named(shown)}."


def below(shown: Sequence[Panel], names: Mapping[str, str]) -> str:
    """The lines that lie below an axis that does not begin at 0, in a sentence."""
    sentences = []
    for panel in shown:
        low, lines = panel.ends[0], panel.points.items()
        tops = {names.get(s, s): max(summary(values).median for values in of.values()) for s, of in lines}
        under = [f"{plain(name)} (at most {top:.2f})" for name, top in tops.items() if top < low]
        sentences += [f"Below the axis of {plain(panel.title)!r}: {', '.join(under)}."] if low > 0 and under else []
    return " ".join(sentences)


def floors_named(shown: Sequence[Panel]) -> str:
    """Describe the dotted lines, as the end of a sentence."""
    names = {name for panel in shown for at in (panel.floors or {}).values() for name in at}
    each = [f"{SHORT[name]} ({words})" for name, words in (FLOORS | EXACT).items() if name in names]
    if each:
        return f"; dotted lines are baselines: {', '.join(each)}"
    return "; baselines are unknown" if any(panel.floors is not None for panel in shown) else ""


def coded(results: Results, names: Mapping[str, str]) -> str:
    """The texts of the lines that an experiment calls by other words."""
    words = results.words.names
    texts = {names[label]: label for label in names if label in words}
    texts |= {words[key]: key for label in names for key in words if label.startswith(f"{key} (")}
    return f"Lines: {'; '.join(f'{plain(a)} is {plain(b)}' for a, b in texts.items())}." if texts else ""


def ending(results: Results, *, every_rate: bool = False) -> list[str]:
    """The models and trials, and how rates were chosen; then how tokens are counted, and the shared test set."""
    table_cells = cells(results)
    each = ["Every learning rate tried is drawn; none was chosen.", *rate_gaps(table_cells, results.words)]
    rates_text = " ".join(each if every_rate else rates(table_cells, results.words) or one_rate(table_cells))
    return [
        " ".join([*models(results, table_cells), counts(table_cells, results.unreadable)]),
        " ".join(filter(None, [rates_text, *forced(table_cells), shared(results)])),
    ]


def runs_named(lines: Iterable[Mapping[Any, Sequence[float]]]) -> str:
    """The number of runs behind each point of a line."""
    return f"n = {numbers(len(values) for of in lines for values in of.values())} runs"


def _panels(shown: Sequence[Panel]) -> str:
    """The axes, the title of each panel with what it is, and the number of runs; axes that all panels share once."""
    runs = runs_named(of for panel in shown for of in panel.points.values())
    logs = {panel.along: ", on a log axis" if panel.is_logarithmic else "" for panel in shown}
    once = list({panel.title: panel for panel in shown}.values())  # a panel of each title
    axes = {(panel.up, panel.along) for panel in shown}
    if len(axes) > 1:
        each = [axes_named(p.title, p.up, p.along, logs[p.along], p.about) for p in once]
        return f"{'; '.join(each)}; {runs}."
    ((up, along),) = axes
    titled = [f"{plain(p.title)}{f' ({plain(p.about)})' if p.about else ''}" for p in once if p.title or p.about]
    return f"{axes_named('', up, along, logs[along])}{': ' if titled else ''}{'; '.join(titled).strip()}; {runs}."
