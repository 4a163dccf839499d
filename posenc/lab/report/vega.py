"""Panels as Vega-Lite charts: lines through medians, single runs, spreads, floors and the sizes trained on."""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from posenc.lab.figures.floor_lines import NAMES, apart
from posenc.lab.figures.panels import TICKS, Panel, ranged
from posenc.lab.figures.style import INK, SOFT, Look, plain, safe
from posenc.lab.results.statistics import LEAST, summary

if TYPE_CHECKING:
    import altair as alt

WIDE, TALL = 300, 180
"""Pixels of the axes of a chart, where its column is as wide."""
LINE = 11
"""The height of a line of text."""
LISTED = 12
"""The most numbers in the text of a run."""
TINY = 1e-12
"""Stands for a loss of 0, which has no logarithm."""
CROSS = "M-1-.6-.6-1 0-.4.6-1 1-.6.4 0 1 .6.6 1 0 .4-.6 1-1 .6-.4 0Z"
SHAPES = {"o": "circle", "s": "square", "D": "diamond", "^": "triangle-up", "v": "triangle-down", "P": "cross"}
SHAPES |= {"<": "triangle-left", ">": "triangle-right", "X": CROSS, "*": "wedge", "h": "stroke"}
"""A marker of `posenc.lab.figures.style` to the shape of Vega."""
NOISE = re.compile(
    r' (?:xmlns(?::xlink)?|version|aria-roledescription|stroke-miterlimit)="[^"]*"'
    r'|<path class="(?:fore|back)ground"[^>]*/>'
)
"""Parts of Vega's output that a page does without."""
LONG = re.compile(r' (?:d|transform)="[^"]*"')
"""Attributes whose numbers need one decimal."""
RULE, STRIP, FAINT = "#e2e2de", "#f1f1ee", "#d4d4d0"

INKS = {"labelColor": INK, "titleColor": SOFT, "domainColor": SOFT, "tickColor": SOFT, "gridColor": RULE}
INKS |= {"titleFontWeight": "normal", "aria": False}
"""The look of axes."""


def need_altair() -> None:
    """Raise `ValueError` unless the packages of charts and pages are installed, before any work is done for them."""
    if any(importlib.util.find_spec(name) is None for name in ("altair", "vl_convert", "jinja2")):
        raise ValueError(
            "A report needs altair, vl-convert-python and jinja2; pip install 'posenc[plot]' has all of them."
        )


def picture(panel: Panel, looks: Mapping[str, Look], names: Mapping[str, str], runs: bool = True) -> str:
    """Draw a panel as an SVG without its title; each run and each median has its numbers as a text."""
    import vl_convert

    shown = ", ".join(names[scheme] for scheme in _shown(panel, looks))
    label = safe(f"{panel.title}: {panel.up} against {panel.along}, {shown}")
    made = vl_convert.vegalite_to_svg(chart(panel, looks, names, runs).to_dict(validate=False))
    made = NOISE.sub("", made)
    made = LONG.sub(lambda number: re.sub(r"(\.\d)\d+", r"\1", number[0]), made)
    return made.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def _shown(panel: Panel, looks: Mapping[str, Look]) -> list[str]:
    return [scheme for scheme in looks if scheme in panel.points and panel.highlighted in (None, scheme)]


def chart(panel: Panel, looks: Mapping[str, Look], names: Mapping[str, str], runs: bool = True) -> alt.LayerChart:
    """Lay out a panel; without `runs` the single ones are left out."""
    import altair as alt
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):  # else each part is validated whenever another is added
        x, y = axes(panel)
        layers = [*strip(panel, x), *_grey(panel, x, y), *floors(panel, x, y)]
        layers += _lines(panel, {scheme: looks[scheme] for scheme in _shown(panel, looks)}, names, x, y, runs)
        made = alt.layer(*layers).properties(width=WIDE, height=TALL, padding=4).configure_view(stroke=None)
        return made.configure_axis(**INKS)


def axes(panel: Panel) -> tuple[alt.X, alt.Y]:
    """Return the axes of a panel, logarithmic where sizes double or the height is a loss."""
    import altair as alt

    at = panel.places
    ends = [at[0], at[-1]] if at[0] < at[-1] else [at[0] / 2, 2 * at[0] or 1]
    along = alt.Scale(type="log", base=2, domain=ends, nice=False) if panel.is_logarithmic else alt.Scale(domain=ends)
    few = {"values": list(at)} if len(at) <= TICKS else {"tickCount": 5}
    x = alt.X("x:Q", title=plain(panel.along), scale=along)
    x = x.axis(grid=False, labelOverlap=True, format=".6~g", **few)
    kind = {"type": "log", "nice": False} if panel.falling else {"clamp": True}
    up = alt.Scale(domain=heights(panel), **kind)
    side = {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end", "titleX": -30, "titleY": -10}
    return x, alt.Y("y:Q", title=plain(panel.up), scale=up).axis(**side, tickCount=5, domain=False)


def heights(panel: Panel) -> list[float]:
    """Return the ends of the vertical axis: those of the panel, or of all that is drawn of a loss."""
    if not panel.falling:
        return list(panel.ends)
    values = [value for of in panel.points.values() for at in of.values() for value in at]
    values = [max(v, TINY) for v in [*values, *(v for at in (panel.floors or {}).values() for v in at.values())]]
    low, high = min(values), max(values)
    return [low, high] if low < high else [low / 2, high * 2]


def strip(panel: Panel, x: alt.X) -> Iterator[alt.Chart]:
    """Yield the sizes trained on, as a strip behind the lines."""
    if panel.trained and [p for p in panel.places if panel.trained[0] <= p <= panel.trained[1]]:
        low, high = (min(max(end, panel.places[0]), panel.places[-1]) for end in panel.trained)
        text = f"trained on {ranged(int(panel.trained[0]), int(panel.trained[1]))}"
        base = _chart([{"x": low, "end": high, "text": text}])
        yield base.mark_rect(color=STRIP, aria=False).encode(x=x, x2="end:Q")
        yield base.mark_text(color=SOFT, align="right", x="width", y=-10, aria=False).encode(text="text:N")


def floors(panel: Panel, x: alt.X, y: alt.Y, tall: int = TALL) -> Iterator[alt.Chart]:
    """Yield dotted lines at the floors, with their names beside their ends, apart from one another."""
    import altair as alt

    height = math.log if panel.falling else float
    low, high = map(height, heights(panel))
    lines, ends = [], []
    for name, word in NAMES.items():
        at = [(place, max(of[name], TINY)) for place, of in sorted((panel.floors or {}).items()) if name in of]
        lines += [{"x": place, "y": value, "floor": word} for place, value in at]
        for place, value in at[-1:]:
            ends.append((tall * (height(value) - low) / (high - low), word, f"{word} at {place:g}: {value:.2f}"))
    if ends:
        tops = apart([end[0] for end in sorted(ends)], LINE, 0)
        names = [
            {"top": tall - top, "word": w, "tip": tip} for top, (_, w, tip) in zip(tops, sorted(ends), strict=True)
        ]
        dots = _chart(lines).mark_line(
            color=SOFT, strokeDash=[0.1, 3.2], strokeCap="round", strokeWidth=1.4, aria=False
        )
        yield dots.encode(x=x, y=y, detail="floor:N")
        texts = _chart(names).mark_text(color=SOFT, align="left", x="width", dx=5)
        yield texts.encode(y=alt.Y("top:Q", scale=None), text="word:N", description="tip:N")


def _grey(panel: Panel, x: alt.X, y: alt.Y) -> Iterator[alt.Chart]:
    """Yield the medians of all schemes, where only one of them is highlighted."""
    if panel.highlighted:
        rows = [row for scheme in panel.points for row in medians(panel, scheme, TICKS)]
        yield _chart(rows).mark_line(color=FAINT, strokeWidth=1.2, aria=False).encode(x=x, y=y, detail="scheme:N")


def _lines(
    panel: Panel, looks: Mapping[str, Look], names: Mapping[str, str], x: alt.X, y: alt.Y, runs: bool
) -> Iterator[alt.Chart]:
    """Yield bands over the spreads of many runs, single runs, and thick lines through medians."""
    import altair as alt

    hue = alt.Color("colour:N", scale=None)
    middles = {scheme: [*medians(panel, scheme)] for scheme in looks}
    for scheme, rows in middles.items():
        look = looks[scheme]
        own = {"colour": look.colour, "dash": dashes(look), "weight": look.weight + 0.4}
        own |= {"shape": SHAPES.get(look.marker, "circle"), "size": 8 * (1.6 + look.weight) ** 1.3}
        for row in rows:
            row |= own | {"tip": plain(f"{names[scheme]} at {row['tip']}")}
    many = [row for rows in middles.values() if max(row["n"] for row in rows) >= LEAST for row in rows]
    if many and not panel.each:
        low = y.copy()
        low.shorthand = "low:Q"
        band = _chart(many).mark_area(opacity=0.15, aria=False)
        yield band.encode(x=x, y=low, y2="high:Q", color=hue, detail="scheme:N")
    if runs or panel.each:
        each = [row | {"colour": looks[s].colour} for s in looks for row in _runs(panel, s, names[s])]
        singles = _chart(each).encode(x=x, y=y, color=hue, detail="tip:N")
        yield singles.mark_line(strokeWidth=0.7, opacity=0.4, aria=False)
        yield singles.mark_line(strokeWidth=7, opacity=0).encode(description="tip:N")
    if not panel.each:
        line = _chart([row for rows in middles.values() for row in rows]).mark_line(aria=False)
        thick, dashed = alt.StrokeWidth("weight:Q", scale=None), alt.StrokeDash("dash:N", scale=None)
        yield line.encode(x=x, y=y, color=hue, detail="scheme:N", strokeWidth=thick, strokeDash=dashed)
        spaced = _chart([row for rows in middles.values() for row in rows[:: max(1, len(rows) // TICKS)]])
        points = spaced.mark_point(filled=True, opacity=1).encode(x=x, y=y, color=hue, description="tip:N")
        yield points.encode(shape=alt.Shape("shape:N", scale=None), size=alt.Size("size:Q", scale=None))


def _chart(rows: Sequence[Mapping[str, Any]]) -> alt.Chart:
    import altair as alt

    return alt.Chart(alt.InlineData(list(rows)))


def dashes(look: Look) -> list[float]:
    """Return the lengths of the dashes of a line and of their gaps; none of a full line."""
    return [] if isinstance(look.dash, str) else [round(1.6 * part, 1) for part in look.dash[1]]


def medians(panel: Panel, scheme: str, most: int = 10**9) -> Iterator[dict[str, Any]]:
    """Yield the medians of a scheme, each with its spread and a text, at no more than `most` positions."""
    points = panel.points[scheme]
    at = sorted(points)
    for place in at[:: max(1, -(-len(at) // most))]:
        s = summary(points[place])
        low, high, middle = (max(v, TINY) if panel.falling else v for v in (s.low, s.high, s.median))
        spread = f"{s.kind} {_number(panel, s.low)} to {_number(panel, s.high)}, " if s.n > 1 else ""
        tip = f"{place:g}: median {_number(panel, s.median)}, {spread}n = {s.n}"
        yield {"x": place, "y": middle, "low": low, "high": high, "n": s.n, "tip": tip, "scheme": scheme}


def _runs(panel: Panel, scheme: str, name: str) -> Iterator[dict[str, Any]]:
    """Yield the points of each run, with the text of the run."""
    points, seeds, runs = panel.points[scheme], panel.seeds.get(scheme, {}), dict[str, list[tuple[Any, float]]]()
    for place in sorted(points):
        values = points[place]
        called = [f"seed {s}" for s in seeds[place]] if place in seeds else [f"run {k + 1}" for k in range(len(values))]
        for run, value in zip(called, values, strict=True):
            runs.setdefault(run, []).append((place, value))
    for run, of in runs.items():
        stride = -(-len(of) // LISTED)
        kept = of if stride == 1 else [*of[::stride], *of[-1:]]
        numbers = ", ".join(f"{_number(panel, value)} at {place:g}" for place, value in dict.fromkeys(kept))
        for place, value in of:
            height = max(value, TINY) if panel.falling else value
            yield {"x": place, "y": height, "tip": plain(f"{name}, {run}: {numbers}")}


def _number(panel: Panel, value: float) -> str:
    return f"{value:.3g}" if panel.falling else f"{value:.2f}"
