"""The figures of a report, each of panels that stand beside each other or below, as the page is wide."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from posenc.lab.figures.across import MOST, PANELS, by_merit, looks_of, multiples
from posenc.lab.figures.by_place import place_panels, without_places
from posenc.lab.figures.curves import SAID, curve_panels
from posenc.lab.figures.figures import length_panels
from posenc.lab.figures.html_table import wide
from posenc.lab.figures.panel_captions import beginning
from posenc.lab.figures.panels import Panel
from posenc.lab.figures.rows import Grid, solved_counts
from posenc.lab.figures.style import Look, safe
from posenc.lab.figures.svg import background, key, picture
from posenc.lab.metrics import LOSSES
from posenc.lab.report.page import Section, paragraphs
from posenc.lab.results.results import Results

HOVER = "Faint lines are single runs; point at one, or touch it, to read its seed and its numbers."
NONE = (
    "Figures are left out, since the file would be too large; choose tasks or schemes by --only, or see `posenc plot`."
)
WITHOUT_RUNS = "Single runs are left out, since the file would be too large; `posenc export` has them."
MAKERS: dict[str, Callable[[Results], Sequence[Panel]]] = {
    "By length": length_panels,
    "By place": place_panels,
    "Loss along training": curve_panels,
}


def charts(results: Results, prefix: str, runs: bool = True) -> tuple[list[Section], list[str]]:
    """The figures for which these results have numbers, and a sentence for each that they have not. `prefix` begins the
    ids on the page, and without `runs` the single ones are left out."""
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
        more = {"By place": without_places(results), "Loss along training": SAID}.get(title, "")
        claimed = title == "By length" and not any(panel.falling for panel in shown)
        names = results.words.lines(dict.fromkeys(s for panel in shown for s in panel.points))
        texts = [*beginning(results, shown, names, claimed=claimed, more=more), HOVER if runs else WITHOUT_RUNS]
        ident = f"{prefix}{len(sections)}"
        sections.append(Section(title, _figure(_panels(results, shown, names, ident, runs), texts), 3))
    if not {record.task.metric for record in results.records} & LOSSES.keys():
        seeds = solved_counts(results)
        grids = "".join(_grid(seeds.order, grid) for grid in seeds.grids)
        sections.append(Section("Seeds", _figure(f'<div class="panels grids">{grids}</div>', [seeds.sentence]), 3))
    return sections, missing


def _figure(body: str, texts: Sequence[str]) -> str:
    return f"<figure>{body}<figcaption>{paragraphs(texts)}</figcaption></figure>"


def _panels(results: Results, shown: Sequence[Panel], names: dict[str, str], ident: str, runs: bool) -> str:
    """A legend and a picture for each panel; of many lines, a picture for each of them with the others in grey."""
    styles = looks_of(results, names)
    if max(len(panel.points) for panel in shown) > MOST:
        return "".join(_multiples(panel, styles, names, f"{ident}-{k}", runs) for k, panel in enumerate(shown))
    keys = [f"<li>{key(styles[scheme])}{safe(names[scheme])}</li>" for scheme in by_merit(shown)]
    pictures = [f"<div><h4>{safe(panel.title)}</h4>{picture(panel, styles, names, runs=runs)}</div>" for panel in shown]
    return f'<ul class="legend">{"".join(keys)}</ul><div class="panels">{"".join(pictures)}</div>'


def _multiples(panel: Panel, styles: dict[str, Look], names: dict[str, str], ident: str, runs: bool) -> str:
    pictures = [
        f"<div><h4>{safe(each.title)}</h4>{picture(each, styles, names, ident, runs)}</div>"
        for each in multiples([panel], names)
        if each is not None
    ]
    head = f"<h4>{safe(panel.title)}</h4>{background(panel, ident)}"
    return f'{head}<div class="panels multiples">{"".join(pictures)}</div>'


def _grid(order: Sequence[str], grid: Grid) -> str:
    """How many seeds solve each size, the darker the more."""
    head = "".join(f'<th scope="col">{size:g}</th>' for size in grid.places)
    lines = []
    for name in order:
        texts, shares = grid.texts.get(name, {}), grid.shares.get(name, {})
        row = (f'<td style="--s:{shares.get(n, 0):.2f}">{safe(texts.get(n, "–"))}</td>' for n in grid.places)
        lines.append(f'<tr><th scope="row">{safe(name)}</th>{"".join(row)}</tr>' if texts else "")
    top = f'<thead><tr><th scope="col">{safe(grid.along)}</th>{head}</tr></thead>'
    table = wide(f'<table class="counts">{top}<tbody>{"".join(lines)}</tbody></table>')
    return f"<div><h4>{safe(grid.title)}</h4>{table}</div>"
