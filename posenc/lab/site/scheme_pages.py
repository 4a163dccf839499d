"""The pages of schemes: a grid of pictures to choose from, and one page for each scheme of the registry."""

from __future__ import annotations

import dataclasses
import inspect
import shlex
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

import posenc
from posenc.catalog.card import Card, bibtex
from posenc.catalog.schemes import card
from posenc.core.scheme import SCHEMES
from posenc.lab.results.ability_scores import AbilityScore
from posenc.lab.results.atlas_cells import AtlasCell, runs_named
from posenc.lab.site import tags
from posenc.lab.site.shelf import Shelved
from posenc.lab.site.tags import Link, SitePage
from posenc.lab.site.usage import usage
from posenc.lab.spec import atlas
from posenc.lab.spec.run import WITH

HOLDS = ("cache", "kernels", "kernel", "direction", "beyond L", "checked", "refused at these dims")
"""The facts that say what a scheme may be used for."""
NO_BREAK = "\xa0"
ABLE = {"decode": "decodes with a cache", "kernels": "tiled kernels", "both": "both directions"}
"""What a reader may ask of a scheme, and what it is called."""


def scheme_pages(
    tiles: Mapping[str, tuple[str, bool]],
    shelf: Sequence[Shelved],
    scores: Sequence[AbilityScore],
    cells: Sequence[AtlasCell],
) -> Iterator[SitePage]:
    """The grid, then the page of each scheme."""
    cards = {name: card(name) for name in posenc.names()}
    yield _grid(cards)
    for name, described in cards.items():
        yield _page(name, described, tiles.get(name, ("", False))[1], shelf, scores, cells)


def able(described: Card) -> list[str]:
    """Which of `ABLE` a scheme can."""
    values = {fact.key: fact.value for fact in described.facts}
    can = {"decode": not str(values["cache"]).startswith("none"), "both": not values["causal only"]}
    can["kernels"] = "tiled" in values["kernels"]
    return [name for name in ABLE if can[name]]


def _grid(cards: Mapping[str, Card]) -> SitePage:
    facts = {name: {fact.key: fact.value for fact in described.facts} for name, described in cards.items()}
    families = sorted({of["family"] for of in facts.values()})
    sites = list(dict.fromkeys(site for of in facts.values() for site in of["enters"]))
    choices = {"family": ("Family", families), "site": ("Enters at", sites), "can": ("Can", [*ABLE])}
    menus = [
        tags.menu(name, label, {"": "all"} | {value: ABLE.get(value, value) for value in values})
        for name, (label, values) in choices.items()
    ]
    lines = ['<form class="filters" data-filters="schemes">', *menus]
    lines += ['<p class="count" role="status" aria-live="polite"></p>', "</form>", '<ul class="tiles" id="schemes">']
    for name, described in cards.items():
        of, can = facts[name], able(described)
        data = f'data-family="{escape(of["family"])}" data-site="{escape("|".join(of["enters"]))}"'
        lines.append(
            f'<li {data} data-can="{"|".join(can)}"><a href="{name}.html">'
            f'<img src="../assets/tiles/{name}.svg" alt="What {escape(name)} does to the scores" loading="lazy">'
            f"<strong>{escape(name)}</strong><span>{escape(described.idea)}</span></a></li>"
        )
    about = (
        f"{len(cards)} positional encodings, each by what it does to the scores of 25 tokens: queries down, keys along,"
        " light where low; a curve is the size of a query's scores by its position."
    )
    return tags.page("schemes/index.md", "Schemes", tags.paragraph(about), "\n".join([*lines, "</ul>"]), hide=tags.WIDE)


def _page(
    name: str,
    described: Card,
    moved: bool,
    shelf: Sequence[Shelved],
    scores: Sequence[AbilityScore],
    cells: Sequence[AtlasCell],
) -> SitePage:
    cls = SCHEMES.find(name)
    head = dataclasses.replace(described, equation="", facts=(), title=name, cite=None, notes=())
    rows = [(fact.label, fact.text) for fact in described.facts if fact.text and fact.label not in HOLDS]
    holds = [
        (fact.label, _held(fact.key, fact.value, fact.text))
        for fact in described.facts
        if fact.label in HOLDS or fact.key == "kernels"
    ]
    caption = "Parameters moved at random, since the first ones have no effect." if moved else ""
    shown = tags.picture(
        f"../assets/tiles/{name}.svg", f"What {name} does to the scores of 25 tokens", caption, "score"
    )
    recorded = [s.name for s in shelf if name in s.recorded_schemes]
    task = next((score.task for score in scores if name in score.schemes), "token_k_back(k=3)")
    command = (
        f"posenc sweep --grid {shlex.quote(f'scheme={name},nope')} {shlex.quote(f'task={task}')} --seeds 6 --name mine"
    )
    source = Path(inspect.getsourcefile(cls) or "")
    text = source.read_text(encoding="utf-8")
    file = f"posenc/{source.relative_to(Path(posenc.__file__).parent).as_posix()}"
    entries = bibtex(cls.__doc__)
    return tags.page(
        f"schemes/{name}.md",
        name,
        f'<div class="card">\n{head.as_html()}\n{shown}\n</div>',
        tags.block(described.equation, wrap=True) if described.equation else "",
        *map(tags.paragraph, described.notes),
        tags.facts(rows),
        "## What holds",
        tags.facts(holds),
        "## What was measured",
        *_measured(name, scores, cells),
        tags.links(Link(one, f"../experiments/{one}.html") for one in recorded) if recorded else "",
        "## In a model of yours",
        tags.tabs(usage(name)),
        "## Sweep it",
        tags.block(command, "sh", wrap=True),
        "## Cite",
        tags.block("\n\n".join(entries), "bibtex", wrap=True)
        if entries
        else tags.paragraph("Its source names no publication."),
        "## Source { data-search-exclude }",
        f'??? note "{file}"\n\n'
        + "\n".join(f"    {line}".rstrip() for line in tags.block(text, "python").splitlines()),
    )


def _held(key: str, value: object, text: object) -> str:
    if key == "kernels" and isinstance(value, list):
        return ", ".join(value) or "none but whole squares of scores"
    return str(text)


def _measured(name: str, scores: Sequence[AbilityScore], cells: Sequence[AtlasCell]) -> Iterator[str]:
    """Its row of the atlas, other rows of which it is a part, and what committed experiments have beyond training."""
    row = atlas.row_of(name)
    of_row = [cell for cell in cells if cell.row == row]
    if of_row:
        numbers = [
            (
                c.probe,
                c.model,
                f"{c.once:.2f}",
                f"{c.twice:.2f}",
                f"{c.four:.2f}",
                f"{c.floor:.2f}",
                c.held,
                runs_named(c.seeds, c.rates),
            )
            for c in of_row
        ]
        columns = ("probe", "model", "at L", "at 2 L", "at 4 L", "floor at 2 L", "holds", "runs")
        yield tags.table(columns, numbers, f"The atlas: {row}")
    else:
        yield tags.paragraph("The atlas, which puts every scheme to the same probes, has no row of it yet.")
    others = [cell for cell in cells if cell.row != row and name in atlas.names_in(cell.row.partition(WITH)[0])]
    if others:
        held = {(c.row, c.model): {} for c in others}
        for c in others:
            held[c.row, c.model][c.probe] = c.held.removeprefix("to ")
        probes = [probe for probe in atlas.PROBES if any(probe in of for of in held.values())]
        lines = [(*key, *(of.get(probe, "–") for probe in probes)) for key, of in held.items()]
        yield tags.table(("row", "model", *probes), lines, "Other rows of the atlas, and how far they hold")
    of_scheme = [s for s in scores if name in s.schemes and s.experiment not in atlas.EXPERIMENTS]
    if of_scheme:
        lines = [
            (
                Link(s.task, f"../tasks/{s.task.partition('(')[0]}.html"),
                s.scheme,
                s.size,
                f"{s.right.median:.2f} [{s.right.low:.2f}, {s.right.high:.2f}]".replace(" ", NO_BREAK),
                "yes" if s.learned else "no",
                "–" if s.floor is None else f"{s.floor:.2f}",
                s.right.n,
                Link(s.experiment, f"../experiments/{s.experiment}.html"),
            )
            for s in of_scheme
        ]
        columns = ("task", "as", "size", "right, median [spread]", "learned", "floor", "n", "experiment")
        yield tags.table(columns, lines, "In other experiments, at about twice the longest size trained on")
