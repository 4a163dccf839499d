"""The page of the atlas: a heat map to sort and to choose from, the same as a plain table, and accuracy by place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from posenc.lab.figures.style import HUES
from posenc.lab.site import tags
from posenc.lab.site.atlas_data import CHOSEN, atlas_data, columns, records
from posenc.lab.site.tags import SitePage
from posenc.lab.spec import atlas

METRICS = {
    "x2": "right at 2 L",
    "x1_25": "right at 1.25 L",
    "x4": "right at 4 L",
    "x1": "right at L",
    "reach": "furthest size with 90 %, in L",
}
SCRIPTS = ("assets/vega.js", "assets/atlas-data.js", "assets/atlas.js")
ABOUT = (
    "Every scheme on the same probes. L is the longest size trained on; a number is the median share right over seeds."
    " Blue: how far that is on the way from the best floor, what needs no learning, to 1. Grey: the sizes trained on"
    " were not learned, so that a longer one tells nothing. Hover a cell for its runs; click it for accuracy by place."
    " The address keeps what you choose."
)
EMPTY = (
    "No record of the atlas is committed yet. `posenc sweep atlas` trains it; `posenc atlas rope fox` prints rows side"
    " by side."
)


def atlas_page(experiments: Path, assets: Path) -> SitePage:
    """The page, whose data are written into the folder of assets; without records it says so."""
    data = atlas_data(records(experiments))
    if not data["cells"]:
        return tags.page(
            "atlas.md", "The atlas", "# The atlas", tags.paragraph(ABOUT), tags.paragraph(EMPTY), hide=tags.ALONE
        )
    content = {
        **data,
        "probes": {model: columns(model) for model in atlas.MODELS},
        "titles": {name: probe.title for name, probe in atlas.PROBES.items()},
        "heat": heat_map(),
        "lines": place_lines(),
    }
    written = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    (assets / "atlas-data.js").write_text(f"window.posencAtlas = {written};\n", encoding="utf-8")
    cells = data["cells"]
    rates = [CHOSEN, *sorted({line["rate"] for line in cells} - {CHOSEN}, key=float)]
    models = [model for model in atlas.MODELS if any(line["model"] == model for line in cells)]
    families = [f for f in HUES if any(line["family"] == f for line in cells)]
    families += sorted({line["family"] for line in cells} - {*families})
    menus = [
        tags.field("words", "Rows with"),
        tags.menu("model", "Direction", {m: f"{m}, {'one way' if m == 'decoder' else 'both ways'}" for m in models}),
        tags.menu("metric", "Metric", METRICS),
        tags.menu("rate", "Learning rate", {r: "chosen in validation" if r == CHOSEN else r for r in rates}),
        tags.menu("family", "Family", {"": "all", **{f: f for f in families}}),
        tags.menu("sort", "Sort by", {"": "family", "row": "name"}),
    ]
    picks = [tags.menu("row", "Scheme", {}), tags.menu("probe", "Probe", {})]
    return tags.page(
        "atlas.md",
        "The atlas",
        "# The atlas",
        tags.paragraph(ABOUT),
        '<form class="filters" id="atlas-menus">\n' + "\n".join(menus) + "\n</form>",
        '<p class="note" id="atlas-count" role="status" aria-live="polite"></p>',
        '<div id="atlas-chart"></div>',
        "## By place",
        '<form class="filters" id="atlas-picks">\n' + "\n".join(picks) + "\n</form>",
        '<div id="atlas-places"></div>',
        '<p class="note" id="atlas-words" role="status" aria-live="polite"></p>',
        "## As a table",
        '<div id="atlas-table">\n' + _table(cells, models[0]) + "\n</div>",
        "\n".join(f'<script src="{script}"></script>' for script in SCRIPTS),
        hide=tags.ALONE,
    )


def heat_map() -> dict[str, Any]:
    """The declaration of the heat map over the lines that a reader chose, which the page's script gives it."""
    import altair as alt

    above, below = (
        alt.X("probe:N", sort=None, title=None, axis=alt.Axis(orient=o, labelAngle=-60, domain=False, ticks=False))
        for o in ("top", "bottom")
    )
    by_place = alt.EncodingSortField(field="place", op="min")
    y = alt.Y(
        "row:N", sort=by_place, title=None, axis=alt.Axis(domain=False, ticks=False, labelLimit=150, minExtent=60)
    )
    shade = alt.Color("above:Q", scale=alt.Scale(scheme="blues", domain=[0, 1]), legend=None)
    shown = ("row", "probe", "value", "L, 1.25 L, 2 L, 4 L", "holds to", "floor at 2 L", "rate", "runs", "lost")
    base = alt.Chart(alt.NamedData("cells")).encode(y=y)
    cell = base.mark_rect(stroke="#fff", strokeWidth=1, cursor="pointer").encode(
        x=above,
        color=alt.condition("datum.learned", shade, alt.value("#d5d5d5")),
        tooltip=[alt.Tooltip(f"{name.replace('.', '_')}:N", title=name) for name in shown],
    )
    ink = alt.condition("datum.learned && datum.above > 0.68", alt.value("#fff"), alt.value("#222"))
    text = base.mark_text(fontSize=10, tooltip=None).encode(x=below, text="text:N", color=ink)
    words = "Heat map of rows and probes; the table below has its numbers"
    chart = (cell + text).resolve_axis(x="independent").properties(width="container", description=words)
    return chart.configure_view(stroke=None).to_dict()


def place_lines() -> dict[str, Any]:
    """The declaration of accuracy by place, of a row and of one without any encoding."""
    import altair as alt

    hue = alt.Color("row:N", title=None, scale=alt.Scale(range=["#3b76b5", "#c0651d"]), legend=alt.Legend(orient="top"))
    chart = (
        alt.Chart(alt.NamedData("places"))
        .mark_line(point=True)
        .encode(
            x=alt.X("place:Q", title="place in the row", axis=alt.Axis(grid=False)),
            y=alt.Y("right:Q", title="share right", scale=alt.Scale(domain=[0, 1])),
            color=hue,
            tooltip=["row:N", "place:Q", "right:Q"],
        )
    )
    words = "Share right by place in the longest rows"
    return chart.properties(width="container", height=220, description=words).configure_view(stroke=None).to_dict()


def _table(cells: list[dict[str, Any]], model: str) -> str:
    """The share right at 2 L at the chosen rate, for readers without a script, and for print."""
    probes = columns(model)
    at = {(c["row"], c["probe"]): c for c in cells if c["model"] == model and c["rate"] == CHOSEN}
    rows = [(row, *(_text(at.get((row, probe))) for probe in probes)) for row in dict.fromkeys(row for row, _ in at)]
    return tags.table(("scheme", *probes), rows, f"Right at 2 L in {model}s, at the rate chosen in validation")


def _text(cell: dict[str, Any] | None) -> str:
    value = cell and cell["x2"]
    return "–" if value is None else f"{value:.2f}" if cell["reach"] is not None else f"({value:.2f})"
