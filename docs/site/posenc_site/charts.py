"""The charts of the site as Vega-Lite declarations, over data that the scripts of the pages give them."""

from __future__ import annotations

from typing import Any

import altair as alt

from posenc.lab.figures.panels import Panel
from posenc.lab.report import vega

TALL = 300
"""Pixels of the axes of a chart."""


def heat_map() -> dict[str, Any]:
    """Declare the heat map of the atlas, over the cells that a reader chose."""
    above, below = (
        alt.X("probe:N", sort=None, title=None, axis=alt.Axis(orient=o, labelAngle=-60, domain=False, ticks=False))
        for o in ("top", "bottom")
    )
    by_place = alt.EncodingSortField(field="place", op="min")
    rows = alt.Axis(domain=False, ticks=False, minExtent=60)
    shade = alt.Color("above:Q", scale=alt.Scale(scheme="blues", domain=[0, 1]), legend=None)
    shown = ("row", "probe", "value", "L, 1.25 L, 2 L, 4 L", "holds to", "baseline at 2 L", "rate", "runs", "lost")
    base = alt.Chart(alt.NamedData("cells")).encode(y=alt.Y("row:N", sort=by_place, title=None, axis=rows))
    cell = base.mark_rect(stroke="#fff", strokeWidth=1, cursor="pointer").encode(
        x=above,
        color=alt.condition("datum.learned", shade, alt.value("#d5d5d5")),
        tooltip=[alt.Tooltip(f"{name.replace('.', '_')}:N", title=name) for name in shown],
    )
    ink = alt.condition("datum.learned && datum.above > 0.68", alt.value("#fff"), alt.value("#222"))
    text = base.mark_text(fontSize=10, tooltip=None).encode(x=below, text="short:N", color=ink)
    words = "Heat map of schemes and tasks; the table below has its numbers"
    chart = (cell + text).resolve_axis(x="independent").properties(width="container", description=words)
    return chart.configure_view(stroke=None).to_dict()


def place_lines() -> dict[str, Any]:
    """Declare accuracy by place, of a row of the atlas and of the one without any encoding."""
    hue = alt.Color("row:N", title=None, scale=alt.Scale(range=["#3b76b5", "#c0651d"]), legend=alt.Legend(orient="top"))
    chart = (
        alt.Chart(alt.NamedData("places"))
        .mark_line(point=True)
        .encode(
            x=alt.X("place:Q", title="position in the example", axis=alt.Axis(grid=False)),
            y=alt.Y("right:Q", title="share right", scale=alt.Scale(domain=[0, 1])),
            color=hue,
            tooltip=["row:N", "place:Q", "right:Q"],
        )
    )
    words = "Share right by position in the longest examples"
    return chart.properties(width="container", height=220, description=words).configure_view(stroke=None).to_dict()


def lengths(panel: Panel) -> dict[str, Any]:
    """Declare accuracy by size, over the points of `lines`."""
    x, y = vega.axes(panel)
    line = alt.Chart(alt.NamedData("lines")).encode(
        x=x,
        y=y,
        detail="name:N",
        color=alt.Color("colour:N", scale=None),
        opacity=alt.condition("datum.faint", alt.value(0.15), alt.value(1)),
    )
    tips = [alt.Tooltip("name:N", title="scheme"), alt.Tooltip("tip:N", title="at")]
    layers = [*vega.strip(panel, x), *vega.floors(panel, x, y, TALL)]
    layers.append(line.mark_line(strokeWidth=1.6).encode(strokeDash=alt.StrokeDash("dash:N", scale=None)))
    layers.append(line.mark_circle(size=40, opacity=1).encode(tooltip=tips))
    words = "A line for each scheme by size; the names below say its numbers"
    chart = alt.layer(*layers).properties(width="container", height=TALL, description=words)
    return chart.configure_view(stroke=None).configure_axis(**vega.INKS).to_dict()
