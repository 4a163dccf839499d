"""Panels as pictures in SVG, without matplotlib: every line, point and run says its name and its numbers when touched.

A picture fits the column of a page that it stands in. Its colours are left to the page: a line has its hue as `--c`, so
that a dark page can lighten it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from posenc.lab.figures.floor_lines import NAMES, apart
from posenc.lab.figures.panels import TICKS, Floors, Panel, ranged, spaced
from posenc.lab.figures.style import Look, safe
from posenc.lab.results.statistics import LEAST, summary

WIDE, TALL = 360, 236
"""The units of a picture, which are pixels where it is drawn in its size."""
LEFT, RIGHT, NAMED, TOP, BOTTOM = 42, 12, 72, 20, 38
"""What stands around the axes; at the right more where floors have names."""
LINE = 11
"""The height of a line of text."""
LISTED = 12
"""The most numbers that a run says of itself."""
TINY = 1e-12
"""In the place of a loss of 0, which has no logarithm."""
SHAPES = {
    "s": "-.85,-.85 .85,-.85 .85,.85 -.85,.85",
    "D": "0,-1.2 1.2,0 0,1.2 -1.2,0",
    "^": "0,-1.1 1.05,.8 -1.05,.8",
    "v": "0,1.1 1.05,-.8 -1.05,-.8",
    "<": "-1.1,0 .8,-1.05 .8,1.05",
    ">": "1.1,0 -.8,-1.05 -.8,1.05",
    "P": "-.4,-1 .4,-1 .4,-.4 1,-.4 1,.4 .4,.4 .4,1 -.4,1 -.4,.4 -1,.4 -1,-.4 -.4,-.4",
    "X": "0,-.55 .6,-1.15 1.15,-.6 .55,0 1.15,.6 .6,1.15 0,.55 -.6,1.15 -1.15,.6 -.55,0 -1.15,-.6 -.6,-1.15",
    "*": "0,-1.3 .35,-.4 1.25,-.4 .5,.15 .8,1.05 0,.5 -.8,1.05 -.5,.15 -1.25,-.4 -.35,-.4",
    "h": "0,-1.1 .95,-.55 .95,.55 0,1.1 -.95,.55 -.95,-.55",
}
"""Corners of the markers of `posenc.lab.figures.style`; one that is not here is a disc."""
Scale = Callable[[float], float]


def picture(
    panel: Panel, looks: Mapping[str, Look], names: Mapping[str, str], grey: str = "", runs: bool = True
) -> str:
    """A panel as an `svg`, without its title. `grey` is the id of the lines behind a highlighted one, and without
    `runs` the single ones are left out."""
    x, y, right = _scales(panel)
    shown = [scheme for scheme in looks if scheme in panel.points and panel.highlighted in (None, scheme)]
    lines = [_line(panel, scheme, looks[scheme], names[scheme], x, y, runs) for scheme in shown]
    behind = [f'<use href="#{grey}"/>'] if grey else []
    parts = [*_trained(panel, x), *_along(panel, x, right), *_up(panel, y, right), *_floors(panel.floors or {}, x, y)]
    label = f"{panel.title}: {panel.up} against {panel.along}, {', '.join(names[scheme] for scheme in shown)}"
    head = f'<svg viewBox="0 0 {WIDE} {TALL}" role="img" aria-label="{safe(label)}">'
    return "".join([head, *parts, *behind, *lines, "</svg>"])


def background(panel: Panel, ident: str) -> str:
    """The medians of all lines of a panel, to stand in grey behind each of them: a part of a picture, by its id."""
    x, y, _ = _scales(panel)
    each = (
        _path([(x(at), y(summary(values[at]).median)) for at in sorted(values)]) for values in panel.points.values()
    )
    return f'<svg class="off" aria-hidden="true"><g id="{ident}" class="grey"><path d="{"".join(each)}"/></g></svg>'


def key(look: Look) -> str:
    """The line and the marker of a legend."""
    line = f'<path class="median" d="M0 6H26"{_dash(look)}/>{_mark(look, 13, 6)}'
    return f'<svg class="key" viewBox="0 0 26 12" aria-hidden="true"><g style="--c:{look.colour}">{line}</g></svg>'


def _line(panel: Panel, scheme: str, look: Look, name: str, x: Scale, y: Scale, runs: bool) -> str:
    """A scheme: a band over the spread of many runs, single ones, and a thick line through medians."""
    points = panel.points[scheme]
    at = sorted(points)
    sums = [summary(points[place]) for place in at]
    parts = []
    if max(s.n for s in sums) >= LEAST and not panel.each:
        above = [(x(place), y(s.high)) for place, s in zip(at, sums, strict=True)]
        below = [(x(place), y(s.low)) for place, s in zip(at, sums, strict=True)]
        parts.append(f'<path class="band" d="{_path([*above, *below[::-1]])}Z"/>')
    singles = _runs(panel, scheme) if runs or panel.each else {}
    for seed, run in singles.items():
        tip = f"{name}, {seed}: {_numbers(panel, run)}"
        route = _path([(x(place), y(value)) for place, value in run])
        parts.append(f'<g class="run"><title>{safe(tip)}</title><path class="hit" d="{route}"/><path d="{route}"/></g>')
    if not panel.each:
        middle = [(x(place), y(s.median)) for place, s in zip(at, sums, strict=True)]
        parts.append(f'<path class="median" d="{_path(middle)}"{_dash(look)}/>')
        stride = max(1, len(at) // TICKS)
        for place, s, (left, top) in [*zip(at, sums, middle, strict=True)][::stride]:
            tip = f"{name} at {place:g}: median {_number(panel, s.median)}, {_spread(panel, s)}n = {s.n}"
            parts.append(f"<g><title>{safe(tip)}</title>{_mark(look, left, top)}</g>")
    return f'<g style="--c:{look.colour}">{"".join(parts)}</g>'


def _runs(panel: Panel, scheme: str) -> dict[str, list[tuple[Any, float]]]:
    """Seed, in words, to the points of its run."""
    points, seeds, runs = panel.points[scheme], panel.seeds.get(scheme, {}), dict[str, list[tuple[Any, float]]]()
    for place in sorted(points):
        values = points[place]
        named = (
            [f"seed {seed}" for seed in seeds[place]]
            if place in seeds
            else [f"run {k + 1}" for k in range(len(values))]
        )
        for name, value in zip(named, values, strict=True):
            runs.setdefault(name, []).append((place, value))
    return runs


def _numbers(panel: Panel, run: Sequence[tuple[Any, float]]) -> str:
    stride = -(-len(run) // LISTED)
    kept = run if stride == 1 else [*run[::stride], *run[-1:]]
    return ", ".join(f"{_number(panel, value)} at {place:g}" for place, value in dict.fromkeys(kept))


def _number(panel: Panel, value: float) -> str:
    return f"{value:.3g}" if panel.falling else f"{value:.2f}"


def _spread(panel: Panel, s: Any) -> str:
    return f"{s.kind} {_number(panel, s.low)} to {_number(panel, s.high)}, " if s.n > 1 else ""


def _scales(panel: Panel) -> tuple[Scale, Scale, float]:
    """Places along x and heights to where they stand, and the right end of the axes."""
    right, at = WIDE - (NAMED if panel.floors else RIGHT), panel.places
    x = _scale(at[0], at[-1], LEFT + 8, right - 8, panel.is_logarithmic)
    low, high = _heights(panel)
    return x, _scale(low, high, TALL - BOTTOM - 3, TOP + 3, panel.falling), right


def _heights(panel: Panel) -> tuple[float, float]:
    """The ends of the vertical axis: those of the panel, or of a loss all that is drawn."""
    if not panel.falling:
        return panel.ends
    values = [value for of in panel.points.values() for at in of.values() for value in at]
    values = [max(v, TINY) for v in [*values, *(v for at in (panel.floors or {}).values() for v in at.values())]]
    return min(values), max(values)


def _scale(low: float, high: float, start: float, end: float, log: bool) -> Scale:
    """A linear or logarithmic scale that keeps what lies beyond its ends at them."""
    height = (lambda value: math.log(max(value, TINY))) if log else float
    first, last = height(low), height(high)
    if first == last:
        return lambda _: (start + end) / 2
    return lambda value: start + min(max((height(value) - first) / (last - first), 0), 1) * (end - start)


def _along(panel: Panel, x: Scale, right: float) -> list[str]:
    """The horizontal axis, with as many numbers as have room."""
    floor, at = TALL - BOTTOM, panel.places
    at = at if len(at) <= TICKS else [at[0], *at[len(at) // 4 :: max(1, len(at) // 4)]]
    kept = spaced([x(place) for place in at], 22, [f"{place:g}" for place in at])
    marks = [(x(place), f"{place:g}") for place in at if x(place) in kept]
    ticks = [f'<path class="axis" d="M{_n(left)} {floor}v3"/>{_text(left, floor + 14, text)}' for left, text in marks]
    line = f'<path class="axis" d="M{LEFT} {floor}H{_n(right)}"/>'
    return [line, *ticks, _text((LEFT + right) / 2, TALL - 6, panel.along, "soft")]


def _up(panel: Panel, y: Scale, right: float) -> list[str]:
    """The vertical axis and its lines."""
    low, high = _heights(panel)
    heights = _decades(low, high) if panel.falling else [low + k * (high - low) / 4 for k in range(5)]
    texts = [f"{height:g}".replace("0.", ".") if not panel.falling else f"{height:g}" for height in heights]
    lines = [f'<path class="rule" d="M{LEFT} {_n(y(height))}H{_n(right)}"/>' for height in heights]
    numbers = [_text(LEFT - 5, y(h) + 3.5, text, end=True) for h, text in zip(heights, texts, strict=True)]
    return [*lines, *numbers, _text(2, 11, panel.up, "soft", start=True)]


def _decades(low: float, high: float) -> list[float]:
    """The powers of ten of a log axis; where it has fewer than two, its halves and fifths too."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1,), (1, 2, 5)):
        marks = [step * 10.0**power for power in powers for step in steps]
        marks = [mark for mark in marks if low <= mark <= high]
        if len(marks) >= 2:
            return marks[:: -(-len(marks) // 6)]
    return [low, high] if low < high else [low]


def _trained(panel: Panel, x: Scale) -> list[str]:
    """The sizes trained on, as a strip behind the lines with its name above."""
    if panel.trained is None or not (inside := [p for p in panel.places if panel.trained[0] <= p <= panel.trained[1]]):
        return []
    left, wide = x(inside[0]) - 6, x(inside[-1]) - x(inside[0]) + 12
    strip = f'<rect class="strip" x="{_n(left)}" y="{TOP}" width="{_n(wide)}" height="{TALL - BOTTOM - TOP}"/>'
    words = f"trained on {ranged(int(panel.trained[0]), int(panel.trained[1]))}"
    return [strip, _text(WIDE - RIGHT, 11, words, "soft", end=True)]


def _floors(floors: Floors, x: Scale, y: Scale) -> list[str]:
    """Dotted lines at the floors, with their names beside their ends, apart from one another."""
    lines, ends = [], []
    for name, word in NAMES.items():
        if at := [(x(place), y(floors[place][name])) for place in sorted(floors) if name in floors[place]]:
            last = max(place for place in floors if name in floors[place])
            tip = f"{word} at {last:g}: {floors[last][name]:.2f}"
            lines.append(f'<path class="floor" d="{_path(at)}"/>')
            ends.append((-at[-1][1], word, tip))
    heights = apart(sorted(height for height, *_ in ends), LINE, -(TALL - BOTTOM))
    names = [
        f"<g><title>{safe(tip)}</title>{_text(WIDE - NAMED + 4, 3.5 - height, word, 'soft', start=True)}</g>"
        for height, (_, word, tip) in zip(heights, sorted(ends), strict=True)
    ]
    return [*lines, *names]


def _text(left: float, top: float, text: str, look: str = "", *, start: bool = False, end: bool = False) -> str:
    side = "start" if start else "end" if end else "middle"
    look = f' class="{look}"' if look else ""
    return f'<text x="{_n(left)}" y="{_n(top)}" text-anchor="{side}"{look}>{safe(text)}</text>'


def _mark(look: Look, left: float, top: float) -> str:
    """A marker, with room around it to touch."""
    size = 1.6 + look.weight
    if look.marker in SHAPES:
        place = f'transform="translate({_n(left)} {_n(top)}) scale({_n(size)})"'
        return f'<polygon class="mark" points="{SHAPES[look.marker]}" {place}/>'
    return f'<circle class="mark" cx="{_n(left)}" cy="{_n(top)}" r="{_n(size)}"/>'


def _dash(look: Look) -> str:
    width = f' stroke-width="{look.weight + 0.4:.1f}"'
    if isinstance(look.dash, str):
        return width
    return f'{width} stroke-dasharray="{" ".join(_n(1.6 * part) for part in look.dash[1])}"'


def _path(points: Sequence[tuple[float, float]]) -> str:
    """A line through points; one alone is a dot."""
    first, *others = points
    rest = "L" + " ".join(f"{_n(left)} {_n(top)}" for left, top in others) if others else "h0"
    return f"M{_n(first[0])} {_n(first[1])}{rest}"


def _n(value: float) -> str:
    """A number to a tenth."""
    return f"{value:.1f}".removesuffix(".0")
