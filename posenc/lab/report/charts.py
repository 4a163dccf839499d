"""The figures of a report: charts beside each other or below, as the page is wide, and their captions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from posenc.lab.figures.across import MOST, PANELS, by_merit, looks_of, multiples
from posenc.lab.figures.curves import SAID, curve_panels, place_panels, without_places
from posenc.lab.figures.figures import length_panels
from posenc.lab.figures.panel_captions import beginning
from posenc.lab.figures.panels import Panel
from posenc.lab.figures.rows import solved_counts
from posenc.lab.metrics import LOSSES
from posenc.lab.report.page import Piece, Section
from posenc.lab.report.vega import picture
from posenc.lab.results.results import Results

HOVER = "Faint lines are single runs; point at one, or touch it, to read its seed and its numbers."
NONE = (
    "Figures are left out, since the file would be too large; choose tasks or schemes by --only, or see `posenc plot`."
)
WITHOUT_RUNS = "Single runs are left out, since the file would be too large; `posenc export` has them."
MAKERS: dict[str, Callable[[Results], Sequence[Panel]]] = {
    "By length": length_panels,
    "By position": place_panels,
    "Loss along training": curve_panels,
}


KEYS = dict(zip("osD^vPX*<>h", "●■◆▲▼✚✖▾◀▶━", strict=True))
"""A marker to the letter that stands for it in a legend."""


def charts(results: Results, runs: bool = True) -> tuple[list[Section], list[str]]:
    """Draw the figures for which results have numbers; say in a sentence why another is missing. Without `runs` the
    single ones are left out."""
    sections, missing = [], []
    for title, maker in MAKERS.items():
        try:
            shown = list(maker(results))
        except ValueError:
            missing.append(f"{title}: not drawn, since the records hold nothing of it.")
            continue
        if (many := sum(len(p.points) if len(p.points) > MOST else 1 for p in shown)) > PANELS:
            missing.append(f"{title}: not drawn, since it would take {many} panels; choose tasks or schemes by --only.")
            continue
        more = {"By position": without_places(results), "Loss along training": SAID}.get(title, "")
        claimed = title == "By length" and not any(panel.falling for panel in shown)
        names = results.words.lines(dict.fromkeys(s for panel in shown for s in panel.points))
        texts = [*beginning(results, shown, names, claimed=claimed, more=more), HOVER if runs else WITHOUT_RUNS]
        sections.append(Section(title, [Piece("charts", _figure(results, shown, names, runs) | {"texts": texts})], 3))
    if not {record.task.metric for record in results.records} & LOSSES.keys():
        sections.append(Section("Seeds", [Piece("counts", solved_counts(results))], 3))
    return sections, missing


def _figure(results: Results, shown: Sequence[Panel], names: dict[str, str], runs: bool) -> dict[str, Any]:
    """Draw a chart for each panel below a legend; of many lines, a chart for each of them with the others in grey."""
    from markupsafe import Markup

    looks = looks_of(results, names)

    def pictures(panels: Iterable[Panel]) -> list[tuple[str, Markup]]:
        return [(panel.title, Markup(picture(panel, looks, names, runs))) for panel in panels]

    if max(len(panel.points) for panel in shown) > MOST:
        groups = [(p.title, pictures(filter(None, multiples([p], names)))) for p in shown]
        return {"legend": [], "look": "multiples", "groups": groups}
    legend = [(looks[s].colour, KEYS.get(looks[s].marker, "●"), names[s]) for s in by_merit(shown)]
    return {"legend": legend, "look": "", "groups": [("", pictures(shown))]}
