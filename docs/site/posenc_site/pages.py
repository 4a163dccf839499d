"""The pages of schemes, tasks, experiments, the atlas and abilities, each a template filled with values."""

from __future__ import annotations

import inspect
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

import posenc
from posenc.catalog.card import Card, bibtex
from posenc.catalog.schemes import card
from posenc.core.compose import axes
from posenc.core.scheme import SCHEMES
from posenc.lab import tasks
from posenc.lab.cli.atlas_for import COUNTED
from posenc.lab.explain import by_hand, problem, task_card, worksheet
from posenc.lab.spec import atlas
from posenc.lab.spec.abilities import ABILITIES, ability_of
from posenc.lab.spec.run import WITH
from posenc_site import charts, records
from posenc_site.kit import ALONE, ENVIRONMENT, WIDE, Link, SitePage, page
from posenc_site.records import CHOSEN, ROOT, AtlasCell, Shelved, Table, two

EXAMPLES = Path(__file__).parent.parent / "examples.json"
"""Three examples of each task, since each takes a compilation;
`POSENC_REGENERATE=1 pytest tests/site/test_parts.py -n0 -m ci -k "examples and copy"` writes them."""
SHOWN = (
    "nope sinusoidal learned t5(buckets=16,reach=16) shaw alibi kerple fire rope xpos cope fox stick_breaking path lstm"
)
"""Rows of the atlas on the first page: the encodings of most models, and one or two of each idea."""
HOLDS = ("cache", "kernels", "kernel", "direction", "beyond L", "checked", "refused at these dims")
"""Facts that say where a scheme may be used."""
ABLE = {"decode": "decodes with a cache", "kernels": "tiled kernels", "both": "both directions"}
FRAMEWORKS = ("Flax NNX", "Flax Linen", "Plain JAX")
FORMS = {"single": "Self-attention", "masked": "Masked", "multi-head": "Two heads", "cross": "Cross-attention"}


def pages(moved: set[str]) -> Iterator[SitePage]:
    """Yield every page but the guides and the reference; `moved` are schemes whose picture has random parameters."""
    cells, shelf = records.recorded_cells(), records.shelve()
    cards = {name: card(name) for name in posenc.names()}
    yield home(cells, {"schemes": len(cards), "tasks": len(tasks.names()), "experiments": len(shelf)})
    yield schemes(cards)
    for name, described in cards.items():
        yield scheme(name, described, name in moved, shelf, cells)
    yield task_table()
    examples = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    for name in tasks.names():
        yield task(name, examples.get(name, ()), shelf, cells)
    lines = [(Link(s.name, f"{s.name}.html"), s.experiment.header.claim, *s.counts.values()) for s in shelf]
    yield page("experiments/index.md", "Experiments", "experiments.md", WIDE, rows=lines)
    yield from map(experiment, shelf)
    yield abilities(cells)
    yield hand()


def home(cells: Sequence[AtlasCell], counts: dict[str, int]) -> SitePage:
    """Show three doors, the atlas of some schemes, and two commands."""
    cells = [cell for cell in cells if cell.model == "decoder"]
    rows = [row.replace(",", ", ") for row in SHOWN.split()]
    floors = {cell.probe: cell.floor for cell in reversed(cells)}
    heads = {name: {"title": p.title, "floor": floors[name]} for name, p in atlas.PROBES.items() if name in floors}
    at = {
        (c.row, c.probe): {
            "shade": f"h{round(10 * c.above)}" if c.learned else "off",
            "title": f"{c.probe}, {c.held}",
            "text": two(c.twice),
        }
        for c in cells
    }
    return page(
        "index.md",
        "posenc",
        "home.md",
        ALONE,
        counts=counts,
        probes=heads,
        rows=[(row, name := row.partition("(")[0], name in posenc.names()) for row in rows],
        at=at,
        seeds=max((cell.seeds for cell in cells), default=0),
        all=len({cell.row for cell in cells}),
    )


def atlas_page(data: dict[str, Any]) -> tuple[SitePage, str]:
    """Make the page of the atlas, and the script that has its data; without records there is none."""
    cells = data["cells"]
    if not cells:
        return page("atlas.md", "The atlas", "atlas.md", ALONE, cells=()), ""
    rates = [CHOSEN, *sorted({c["rate"] for c in cells} - {CHOSEN}, key=float)]
    models = [model for model in atlas.MODELS if any(c["model"] == model for c in cells)]
    found = {c["family"] for c in cells}
    families = [f for f in records.HUES if f in found] + sorted(found - {*records.HUES})
    probes = {model: [name for name, p in atlas.PROBES.items() if model in p.models] for model in atlas.MODELS}
    titles = {name: probe.title for name, probe in atlas.PROBES.items()}
    specs = {"probes": probes, "titles": titles, "heat": charts.heat_map(), "lines": charts.place_lines()}
    at = {(c["row"], c["probe"]): c for c in cells if c["model"] == models[0] and c["rate"] == CHOSEN}
    columns = probes[models[0]]
    rows = [(row, *(_right(at.get((row, p))) for p in columns)) for row in dict.fromkeys(row for row, _ in at)]
    made = page(
        "atlas.md",
        "The atlas",
        "atlas.md",
        ALONE,
        cells=cells,
        models=models,
        rates=rates,
        families=families,
        columns=("scheme", *columns),
        rows=rows,
        caption=f"Right at 2 L in {models[0]}s, at the rate chosen in validation",
    )
    return made, f"window.posencAtlas = {written({**data, **specs})};\n"


def written(data: object) -> Markup:
    """Write JSON that may stand inside a script."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


def _right(cell: dict[str, Any] | None) -> str:
    text = two(cell and cell["x2"])
    return text if text == "–" or cell["reach"] is not None else f"({text})"


def able(described: Card) -> list[str]:
    """List the keys of `ABLE` that hold for a scheme."""
    values = {fact.key: fact.value for fact in described.facts}
    can = {"decode": not str(values["cache"]).startswith("none"), "both": not values["causal only"]}
    can["kernels"] = "tiled" in values["kernels"]
    return [name for name in ABLE if can[name]]


def schemes(cards: dict[str, Card]) -> SitePage:
    """Show a grid of pictures to choose from."""
    tiles = []
    for name, described in cards.items():
        facts = {fact.key: fact.value for fact in described.facts}
        of = {"family": facts["family"], "sites": facts["enters"], "can": able(described)}
        tiles.append({"name": name, "idea": described.idea, **of})
    sites = dict.fromkeys(site for tile in tiles for site in tile["sites"])
    families = sorted({tile["family"] for tile in tiles})
    menus = [
        ("family", "Family", {"": "all", **{f: f for f in families}}),
        ("site", "Enters at", {"": "all", **{s: s for s in sites}}),
        ("can", "Can", {"": "all", **ABLE}),
    ]
    return page("schemes/index.md", "Schemes", "schemes.md", WIDE, tiles=tiles, menus=menus)


def scheme(
    name: str,
    described: Card,
    moved: bool,
    shelf: Sequence[Shelved],
    cells: Sequence[AtlasCell],
) -> SitePage:
    """Show a scheme: its equation, facts, measurements, programs, source."""
    source = Path(inspect.getsourcefile(SCHEMES.find(name)) or "")
    grid = f"{shlex.quote(f'scheme={name},nope')} {shlex.quote('task=' + atlas.PROBES['offset'].task)}"
    holds = [fact for fact in described.facts if fact.label in HOLDS or fact.key == "kernels"]
    of_row = [cell for cell in cells if cell.row == atlas.row_of(name)]
    return page(
        f"schemes/{name}.md",
        name,
        "scheme.md",
        card=described,
        moved=moved,
        facts=[(fact.label, fact.text) for fact in described.facts if fact.text and fact.label not in HOLDS],
        holds=[(fact.label, _held(fact.key, fact.value, fact.text)) for fact in holds],
        row=_row(of_row) if of_row else None,
        tables=[_other_rows(name, cells)],
        recorded=[Link(s.name, f"../experiments/{s.name}.html") for s in shelf if name in s.recorded_schemes],
        usage=usage(name),
        command=f"posenc sweep --grid {grid} --seeds 6 --name mine",
        entries=bibtex(SCHEMES.find(name).__doc__),
        file=source.relative_to(ROOT).as_posix(),
        source=source.read_text(encoding="utf-8"),
    )


def usage(name: str) -> dict[str, str]:
    """Return for each framework a program that runs as it stands."""
    scheme = posenc.parse(name)
    n = axes(scheme)
    facts = {"acts": posenc.acts_on_input(scheme), "axes": n if isinstance(n, int) else 1}
    facts["contextual"] = bool(scheme.contextual)
    fill = ENVIRONMENT.get_template("usage.py.jinja").render
    return {framework: fill(name=name, framework=framework, **facts) for framework in FRAMEWORKS}


def _held(key: str, value: object, text: object) -> str:
    return (
        ", ".join(value) or "whole squares of scores only"
        if key == "kernels" and isinstance(value, list)
        else str(text)
    )


def _shares(cell: AtlasCell) -> tuple[str, ...]:
    """Shares right at L, 2 L and 4 L, and the best baseline."""
    return tuple(map(two, (cell.once, cell.twice, cell.four, cell.floor)))


def _runs(cell: AtlasCell) -> str:
    """The runs behind a cell, on one line of a narrow column."""
    return records.runs_named(cell.seeds, cell.rates).replace(" ", "\N{NO-BREAK SPACE}")


def _row(cells: Sequence[AtlasCell]) -> Table:
    columns = ("task", "model", "at L", "at 2 L", "at 4 L", "baseline at 2 L", "holds", "runs")
    rows = [(c.probe, c.model, *_shares(c), c.held, _runs(c)) for c in cells]
    return Table(f"The atlas: {cells[0].row}", columns, rows)


def _other_rows(name: str, cells: Sequence[AtlasCell]) -> Table:
    """List other rows of the atlas that a scheme is part of."""
    held: dict[tuple[str, str], dict[str, str]] = {}
    for c in cells:
        if c.row != atlas.row_of(name) and name in atlas.names_in(c.row.partition(WITH)[0]):
            held.setdefault((c.row, c.model), {})[c.probe] = c.held.removeprefix("to ")
    probes = [probe for probe in atlas.PROBES if any(probe in of for of in held.values())]
    rows = [(*key, *(of.get(probe, "–") for probe in probes)) for key, of in held.items()]
    return Table("Other rows of the atlas, and how far they hold", ("row", "model", *probes), rows)


def task_table() -> SitePage:
    """List the tasks by ability."""
    cards = {name: task_card.unsampled(name) for name in tasks.names()}
    facts = {name: {fact.key: fact for fact in described.facts} for name, described in cards.items()}
    groups = []
    for ability, idea in ABILITIES.items():
        names = [name for name, of in facts.items() if of["ability"].value == ability]
        rows = [(Link(name, f"{name}.html"), cards[name].idea, facts[name]["metric"].text) for name in names]
        groups.append((ability, idea, rows))
    return page("tasks/index.md", "Tasks", "tasks.md", count=len(cards), abilities=groups)


def _doers(name: str, cells: Sequence[AtlasCell]) -> Iterator[Table]:
    """Yield for each model the schemes that hold a task furthest, by its tasks of the atlas."""
    probes = [probe for probe, of in atlas.PROBES.items() if of.task.partition("(")[0] == name]
    columns = ("scheme", "holds", "at L", "at 2 L", "at 4 L", "baseline at 2 L", "runs")
    for model in atlas.MODELS:
        of = [cell for cell in cells if cell.model == model and cell.probe in probes]
        of.sort(key=lambda c: (-(c.reach or 0), -c.twice, c.row))
        rows = [(c.row, c.held, *_shares(c), _runs(c)) for c in of]
        if rows:
            yield Table(f"{', '.join(atlas.PROBES[probe].task for probe in probes)}, in {model}s", columns, rows)


def task(name: str, examples: Sequence[str], shelf: Sequence[Shelved], cells: Sequence[AtlasCell]) -> SitePage:
    """Show a task: examples, facts, the schemes that do it, floors, experiments."""
    described, users = task_card.unsampled(name), [s for s in shelf if name in s.tasks | s.recorded_tasks]
    floors = {label: t for s in reversed(users) for label, t in s.floors.items() if label.partition("(")[0] == name}
    hidden = ("lines", "docstring")
    return page(
        f"tasks/{name}.md",
        name,
        "task.md",
        card=described,
        examples=examples,
        doers=[*_doers(name, cells)],
        facts=[(fact.label, fact.text) for fact in described.facts if fact.text and fact.key not in hidden],
        floors=[*floors.values()],
        used=[Link(s.name, f"../experiments/{s.name}.html") for s in users],
        command=f"posenc sweep --grid scheme=nope,rope,alibi task={name} --seeds 6 --name mine",
        entries=task_card.entries(type(tasks.parse(name))),
    )


def experiment(shelf: Shelved) -> SitePage:
    """Show an experiment: its committed page, its lines by size, setting and command."""
    head = shelf.experiment.header
    facts = [("source", head.source), ("setting", head.setting), ("cost", head.cost), ("variation", head.variation)]
    facts.append(("numbers checked against", shelf.seen))
    facts.append(("tasks", tuple(Link(name, f"../tasks/{name}.html") for name in sorted(shelf.tasks))))
    facts += [(key, ", ".join(shelf.provenance.get(key, ()))) for key in ("commit", "device", "jax")]
    lines = [{"title": of["title"], "chart": charts.lengths(of["panel"]), "lines": of["lines"]} for of in shelf.lengths]
    return page(
        f"experiments/{shelf.name}.md",
        shelf.name,
        "experiment.md",
        WIDE,
        shelf=shelf,
        body=Markup(localized(shelf.page, of_experiments=True)),
        charts=written(lines) if lines else "",
        choices={str(k): of["title"] for k, of in enumerate(lines)},
        facts=facts,
        command=head.command or f"posenc sweep experiments/{shelf.experiment.source}",
    )


def abilities(cells: Sequence[AtlasCell]) -> SitePage:
    """List how far every row of the atlas reaches at each ability, by the one score that it has."""
    columns, parts = ("task", "scheme", "model", "2 L", "holds", "L", "best baseline", "runs"), []
    for ability, idea in ABILITIES.items():
        of_ability = [cell for cell in cells if ability_of(atlas.PROBES[cell.probe].task) == ability]
        rows = [
            (
                Link(cell.probe, f"tasks/{atlas.PROBES[cell.probe].task.partition('(')[0]}.html"),
                cell.row,
                "none" if cell.row in atlas.RECURRENT else cell.model,
                two(cell.twice),
                cell.held,
                two(cell.trained) if cell.learned else f"({two(cell.trained)})",
                two(cell.floor),
                _runs(cell),
            )
            for cell in sorted(of_ability, key=lambda c: (c.probe, c.model, -(c.reach or 0), -c.twice, c.row))
        ]
        shown = [atlas.PROBES[probe] for probe in dict.fromkeys(cell.probe for cell in of_ability)]
        about = ", ".join(f"{probe.title}: {COUNTED[probe.metric]}" for probe in shown)
        parts.append({"name": ability, "idea": idea, "rows": rows, "about": about})
    return page("which.md", "Abilities", "which.md", ("navigation",), columns=columns, abilities=parts)


def hand() -> SitePage:
    """Show attention by hand, each form in numbers, as `posenc explain attention` prints it."""
    sheets = [
        (title, by_hand.sheet(problem.introduced(form, False), None, blank=False)) for form, title in FORMS.items()
    ]
    sheets.append(
        ("With rope + alibi", by_hand.sheet(problem.introduced("single", False), "rope + alibi", blank=False))
    )
    shown = [(title, sheet.about, worksheet.as_text(sheet)) for title, sheet in sheets]
    return page("guides/by-hand.md", "Attention by hand", "by-hand.md", sheets=shown)


ELSEWHERE = {"../README.md": "../index.md", "../CONTRIBUTING.md": "code.md", "../CHANGELOG.md": "changes.md"}
"""Targets of links outside the guides, and the pages that replace them."""


def localized(text: str, of_experiments: bool = False) -> str:
    """Turn links of a guide or an experiment to pages of the site; a file without a page becomes plain text."""

    def local(match: re.Match[str]) -> str:
        shown, target = match[1], match[2]
        if of_experiments and target != (moved := target.removeprefix("../docs/")):
            return f"[{shown}](../guides/{moved})"
        target = f"../experiments/{target}" if of_experiments else target
        file = target.partition("#")[0]
        if figure := re.fullmatch(r"\.\./experiments/figures/([\w-]+\.svg)", file):
            return f"[{shown}](../assets/figures/{figure[1]})"
        if found := re.fullmatch(r"\.\./experiments/(\w+)\.(?:py|md)", file):
            return f"[{shown}](../experiments/{found[1]}.md)"
        if file in ELSEWHERE:
            return f"[{shown}]({ELSEWHERE[file]})"
        return shown if file.startswith("../") else match[0]

    without = re.sub(r"^<!--.*?-->\n|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", local, without)
