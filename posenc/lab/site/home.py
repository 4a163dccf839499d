"""The first page: a sentence, two commands, three doors, and the table of abilities."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from html import escape
from pathlib import Path

from posenc.lab.site import tags
from posenc.lab.site.tags import SitePage

TITLES = {
    ("token_k_back(k=3)", "encoder"): "token three back",
    ("index_of_token(indices=8)", "encoder"): "index",
    ("before", "encoder"): "order of two",
    ("bucket_sort", "encoder"): "sort",
    ("token_k_back", "decoder"): "token before",
    ("index_of_token(indices=8)", "decoder"): "index",
    ("pointer_back(reach=4)", "decoder"): "pointer",
    ("flip_flop", "decoder"): "last bit written",
    ("copy(symbols=20)", "decoder"): "copy",
}
"""What a column of the table is called; another one is called by its task."""
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


def home(front: Path, counts: dict[str, int]) -> SitePage:
    """The page; `front` is the table of the README's figure, and `counts` how many pages there are of each kind."""
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
        f'<p>{listed}; <a href="which.html">which scheme for what</a>.</p>',
        "## What six schemes carry beyond the trained length",
        *_abilities(front),
        "## Two commands",
        tags.paragraph("Train six schemes, print the table, draw the figure: three minutes on two cores."),
        tags.block(INSTALL, "sh"),
        tags.paragraph("Run the tests:"),
        tags.block(TEST, "sh"),
        hide=tags.ALONE,
    )


def _abilities(front: Path) -> Iterator[str]:
    """The table of abilities: rows of schemes, columns of tasks, blue by how far a median is above the best floor."""
    if not front.is_file():
        return
    lines = list(csv.DictReader(front.read_text(encoding="utf-8").splitlines()))
    columns = list(dict.fromkeys((line["record"], line["task"], line["model"]) for line in lines))
    at = {(line["scheme"], line["record"], line["task"], line["model"]): line for line in lines}
    models = [model for _, _, model in columns]
    heads = "".join(f'<th scope="colgroup" colspan="{models.count(m)}">{m}</th>' for m in dict.fromkeys(models))
    names = "".join(f'<th scope="col">{escape(TITLES.get((t, m), t))}</th>' for _, t, m in columns)
    yield '<div class="scroll" tabindex="0" role="region" aria-label="Table of abilities">'
    rows = [f'<table class="heat"><thead><tr><td></td>{heads}</tr><tr><td></td>{names}</tr></thead><tbody>']
    for scheme in dict.fromkeys(line["scheme"] for line in lines):
        cells = "".join(_cell(at.get((scheme, *column))) for column in columns)
        rows.append(f'<tr><th scope="row"><a href="schemes/{scheme}.html">{scheme}</a></th>{cells}</tr>')
    floors = "".join(f"<td>{_floor(column, lines)}</td>" for column in columns)
    rows.append(f'<tr class="floor"><th scope="row">best floor</th>{floors}</tr></tbody></table></div>')
    yield "\n".join(rows)
    yield tags.paragraph(
        "Medians of 6 to 10 runs at about twice the longest size trained on; of copies at 1.3 times. Blue: how far that"
        " is on the way from the best floor, what needs no learning, to 1. Grey: the sizes trained on were not learned,"
        " so that a longer one tells nothing. –: not run.",
        "note",
    )


def _cell(line: dict[str, str] | None) -> str:
    if line is None or not line["median"]:
        return "<td>–</td>"
    text, title = f"{float(line['median']):.2f}", f"{line['task']} at {line['size']}, n = {line['n']}"
    if line["learned"] != "True":
        return f'<td class="off" title="{escape(title)}">{text}</td>'
    level = max(0, min(10, round(10 * float(line["excess"] or 0))))
    return f'<td class="h{level}" title="{escape(title)}">{text}</td>'


def _floor(column: tuple[str, str, str], lines: list[dict[str, str]]) -> str:
    of = [line["floor"] for line in lines if (line["record"], line["task"], line["model"]) == column and line["floor"]]
    return f"{float(of[0]):.2f}" if of else "–"
