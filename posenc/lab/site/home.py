"""The first page: a sentence, three doors, the atlas of some schemes, and two commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import posenc
from posenc.lab.results.atlas_cells import AtlasCell
from posenc.lab.site import tags
from posenc.lab.site.tags import SitePage
from posenc.lab.spec import atlas

SHOWN = (
    "nope",
    "sinusoidal",
    "learned",
    "t5(buckets=16, reach=16)",
    "shaw",
    "alibi",
    "kerple",
    "fire",
    "rope",
    "xpos",
    "cope",
    "fox",
    "stick_breaking",
    "path",
    "lstm",
)
"""The rows of the atlas that stand here: what most models have, and one or two of each idea."""
INSTALL = (
    "python3 -m venv .venv && .venv/bin/pip install -q -c constraints.txt -e '.[plot]' && .venv/bin/posenc quickstart"
)
TEST = "python3 -m venv .venv && .venv/bin/pip install -q -c constraints.txt -e '.[dev]' && .venv/bin/pytest -q"
ABOUT = "Positional encodings for Transformers in JAX, compared honestly and fast."
DOORS = (
    ("Compare", "atlas.html", "The atlas puts every scheme to the same probes; experiments ask what papers claim."),
    ("Use in my model", "guides/model.html", "One attention for Flax NNX, Linen, Equinox and plain JAX, with caches."),
    ("Learn", "guides/attention.html", "Attention by hand, number by number, and what a scheme changes in it."),
)


def home(cells: Sequence[AtlasCell], counts: dict[str, int]) -> SitePage:
    """The page, of the atlas and of how many pages there are of each kind."""
    doors = [
        f'<a class="door" href="{target}"><strong>{title}</strong><span>{escape(text)}</span></a>'
        for title, target, text in DOORS
    ]
    listed = ", ".join(f'<a href="{kind}/index.html">{n} {kind}</a>' for kind, n in counts.items())
    return tags.page(
        "index.md",
        "posenc",
        "# posenc",
        f'<p class="lead">{ABOUT}</p>',
        '<nav class="doors" aria-label="Where to go">\n' + "\n".join(doors) + "\n</nav>",
        f'<p>{listed}; <a href="guides/which-scheme.html">which scheme for what</a>.</p>',
        *_atlas([cell for cell in cells if cell.model == "decoder"]),
        "## Two commands",
        tags.paragraph("Train six schemes, print the table, draw the figure: three minutes on two cores."),
        tags.block(INSTALL, "sh"),
        tags.paragraph("Run the tests:"),
        tags.block(TEST, "sh"),
        hide=tags.ALONE,
    )


def _atlas(cells: Sequence[AtlasCell]) -> Iterator[str]:
    """Some rows on every probe, blue by how far a median is above the best floor, and where all rows are."""
    if not cells:
        return
    at = {(cell.row, cell.probe): cell for cell in cells}
    probes = [probe for probe in atlas.PROBES if any(cell.probe == probe for cell in cells)]
    yield "## What schemes carry to twice the trained length"
    yield '<div class="scroll" tabindex="0" role="region" aria-label="Some schemes of the atlas">'
    names = "".join(f'<th scope="col">{escape(atlas.PROBES[probe].title)}</th>' for probe in probes)
    rows = [f'<table class="heat"><thead><tr><td></td>{names}</tr></thead><tbody>']
    for row in SHOWN:
        name = row.partition("(")[0]
        shown = f'<a href="schemes/{name}.html">{name}</a>' if name in posenc.names() else name
        numbers = "".join(_cell(at.get((row, probe))) for probe in probes)
        rows.append(f'<tr><th scope="row">{shown}</th>{numbers}</tr>')
    floors = "".join(f"<td>{next(c.floor for c in cells if c.probe == probe):.2f}</td>" for probe in probes)
    rows.append(f'<tr class="floor"><th scope="row">best floor</th>{floors}</tr></tbody></table></div>')
    yield "\n".join(rows)
    seeds = max(cell.seeds for cell in cells)
    yield (
        f'<p class="note">Decoders, share right at twice the longest size trained on, medians of {seeds} seeds, which'
        " decide nothing between rows that are close. Blue: how far that is on the way from the best floor, what needs"
        " no learning, to 1. Grey: the sizes trained on were not learned, so that a longer one tells nothing. "
        f'<a href="atlas.html">All {len({cell.row for cell in cells})} rows, encoders, other sizes</a>.</p>'
    )


def _cell(cell: AtlasCell | None) -> str:
    if cell is None:
        return "<td>–</td>"
    kind = f"h{round(10 * cell.above)}" if cell.learned else "off"
    return f'<td class="{kind}" title="{cell.probe}, {cell.held}">{cell.twice:.2f}</td>'
