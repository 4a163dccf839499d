"""Accuracy by size with a line for each scheme, to choose among: of experiments whose lines are many."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from posenc.lab.figures.across import by_merit, looks_of
from posenc.lab.figures.figures import length_panels, worded
from posenc.lab.figures.floor_lines import NAMES
from posenc.lab.figures.panels import Panel, ranged
from posenc.lab.figures.style import INK, SOFT, Look
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import summary
from posenc.lab.site import tags
from posenc.lab.spec.experiment import Experiment

MANY, PLACES = 5, 3
"""The least lines of a panel, through so many sizes or more, for which there is a figure to choose from."""
ABOUT = (
    "Medians over seeds at the chosen rate; the grey strip holds the sizes trained on, dots are floors. Point at a mark"
    " for its spread; a name below brings its line forward, and says its numbers."
)
WORDS = "A line for each scheme by size; the names below say its numbers"
SCRIPTS = ("vega.js", "lengths.js")


def length_charts(experiment: Experiment, results: Results | None) -> list[dict[str, Any]]:
    """A chart for each task in the words of the experiment, with its lines, the best first; none where no task has
    many."""
    if results is None:
        return []
    results = worded(experiment, results)
    shown = [panel for panel in length_panels(results) if _many(panel)]
    names = results.words.lines(dict.fromkeys(scheme for panel in shown for scheme in panel.points))
    styles = looks_of(results, names)
    titles = [f"{p.title}, trained on {ranged(*p.trained)}" if p.trained else p.title for p in shown]
    return [
        {
            "title": title,
            "chart": _chart(panel),
            "lines": [_line(panel, s, names[s], styles[s]) for s in by_merit([panel])],
        }
        for title, panel in zip(titles, shown, strict=True)
    ]


def _many(panel: Panel) -> bool:
    return sum(len(of) >= PLACES for of in panel.points.values()) >= MANY


def section(charts: Sequence[dict[str, Any]]) -> str:
    """The part of a page that shows charts, by a script; without one, and on paper, it is not there."""
    content = json.dumps([*charts], ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    choices = {str(k): chart["title"] for k, chart in enumerate(charts)}
    return "\n".join(
        [
            '<section class="lengths" id="lengths" hidden>',
            "<h2>Line by line</h2>",
            tags.paragraph(ABOUT, "note"),
            f'<form class="filters">{tags.menu("task", "Task", choices)}</form>',
            '<div class="chart"></div>',
            '<ul class="keys"></ul>',
            '<p class="note" role="status" aria-live="polite"></p>',
            f'<script type="application/json">{content}</script>',
            *(f'<script src="../assets/{script}"></script>' for script in SCRIPTS),
            "</section>",
        ]
    )


def _line(panel: Panel, scheme: str, name: str, look: Look) -> dict[str, Any]:
    """A scheme: its look, and at each size the median, in how many runs, and between which ends they are."""
    sums = {size: summary(values) for size, values in sorted(panel.points[scheme].items())}
    digits = ".3g" if panel.falling else ".2f"
    points = [
        {"size": size, "at": round(s.median, 4), "spread": f"{s.low:{digits}} to {s.high:{digits}}, n = {s.n}"}
        for size, s in sums.items()
    ]
    dash = [] if look.dash == "-" else [round(length * look.weight, 1) for length in look.dash[1]]
    return {"name": name, "colour": look.colour, "dash": dash, "points": points}


def _chart(panel: Panel) -> dict[str, Any]:
    """The declaration, over the points of `lines`, which the page's script gives it."""
    import altair as alt

    doubles = alt.Scale(type="log", base=2, nice=False)
    along = doubles if panel.is_logarithmic else alt.Scale(zero=False, nice=False)
    values = alt.Axis(values=panel.places, grid=False, labelOverlap=True, format="~g")
    x = alt.X("size:Q", title=panel.along, scale=along, axis=values)
    up = alt.Scale(type="log") if panel.falling else alt.Scale(domain=[0, 1])
    y = alt.Y("at:Q", title=panel.up, scale=up)
    floors = [
        {"size": size, "at": round(value, 4), "floor": NAMES.get(name, name)}
        for size, at in (panel.floors or {}).items()
        for name, value in at.items()
    ]
    tip = [alt.Tooltip("floor:N"), alt.Tooltip("size:Q", title=panel.along), alt.Tooltip("at:Q", format=".2f")]
    layers = [
        alt.Chart(alt.InlineData(floors)).mark_circle(color=SOFT, size=14, opacity=0.8).encode(x=x, y=y, tooltip=tip)
    ]
    if panel.trained:
        low, high = (min(max(end, panel.places[0]), panel.places[-1]) for end in panel.trained)
        strip = alt.Chart(alt.InlineData([{"size": low, "end": high}])).mark_rect(color="#efefec").encode(x=x, x2="end")
        layers.insert(0, strip)
    line = alt.Chart(alt.NamedData("lines")).encode(
        x=x,
        y=y,
        detail="name:N",
        color=alt.Color("colour:N", scale=None),
        opacity=alt.condition("datum.faint", alt.value(0.15), alt.value(1)),
    )
    tips = [alt.Tooltip("name:N", title="scheme"), alt.Tooltip("size:Q", title=panel.along)]
    tips += [alt.Tooltip("at:Q", title="median"), alt.Tooltip("spread:N", title="seeds")]
    layers += [
        line.mark_line(strokeWidth=1.6).encode(strokeDash=alt.StrokeDash("dash:N", scale=None)),
        line.mark_circle(size=40, opacity=1).encode(tooltip=tips),
    ]
    words = {"labelColor": INK, "titleColor": INK, "domainColor": SOFT, "tickColor": SOFT, "gridColor": "#e8e8e4"}
    chart = alt.layer(*layers).properties(width="container", height=300, description=WORDS)
    return chart.configure_view(stroke=None).configure_axis(**words).to_dict()
