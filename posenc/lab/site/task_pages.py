"""The pages of tasks: a table by ability, and one page for each task of the registry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from posenc.lab import tasks
from posenc.lab.explain import task_card
from posenc.lab.results.floors import floors
from posenc.lab.site import tags
from posenc.lab.site.shelf import Shelved
from posenc.lab.site.tags import Link, SitePage
from posenc.lab.spec.abilities import ABILITIES
from posenc.lab.store.schema import TaskRecord

EXAMPLES = Path(__file__).with_name("examples.json")
"""Three examples of each task, since to make them takes a compilation for each:
`POSENC_REGENERATE=1 pytest tests/site/test_parts.py -n0 -m ci -k "examples and copy"` writes them."""
HIDDEN = ("lines", "docstring")
SIZES = 4


def task_pages(shelf: Sequence[Shelved]) -> Iterator[SitePage]:
    """The table, then the page of each task."""
    yield _table()
    examples = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    for name in tasks.names():
        yield _page(name, examples.get(name, ()), shelf)


def _table() -> SitePage:
    parts = []
    by_name = {name: task_card.unsampled(name) for name in tasks.names()}
    abilities = {name: {f.key: f.value for f in card.facts}["ability"] for name, card in by_name.items()}
    for ability, idea in ABILITIES.items():
        rows = [
            (Link(name, f"{name}.html"), card.idea, {f.key: f.text for f in card.facts}["metric"])
            for name, card in by_name.items()
            if abilities[name] == ability
        ]
        parts += [f"## {ability.capitalize()}", tags.paragraph(f"Asks for {idea}.")]
        parts.append(tags.table(("task", "idea and source", "metric"), rows, ability))
    about = f"{len(by_name)} tasks, by what they ask of positions. Each has an oracle and its floors."
    return tags.page("tasks/index.md", "Tasks", tags.paragraph(about), *parts)


def _page(name: str, examples: Sequence[str], shelf: Sequence[Shelved]) -> SitePage:
    card = task_card.unsampled(name)
    users = [s for s in shelf if name in s.tasks | s.recorded_tasks]
    rows = [(fact.label, fact.text) for fact in card.facts if fact.text and fact.key not in HIDDEN]
    records = _records(name, users)
    command = f"posenc sweep --grid scheme=nope,rope,alibi task={name} --seeds 6 --name mine"
    entries = task_card.entries(type(tasks.parse(name)))
    used = tags.links(Link(s.name, f"../experiments/{s.name}.html") for s in users) if users else ""
    return tags.page(
        f"tasks/{name}.md",
        name,
        f"# {name}",
        tags.paragraph(card.idea, "idea"),
        tags.block(card.equation, wrap=True) if card.equation else "",
        *map(tags.paragraph, card.notes),
        "## Examples",
        tags.paragraph("The input above, what is to be answered at each token below, and the oracle's answer."),
        *map(tags.block, examples),
        "## Facts",
        tags.facts(rows),
        "## Floors",
        *_floors(name, records),
        "## Experiments",
        used or tags.paragraph("No experiment of posenc uses it yet."),
        "## Sweep it",
        tags.block(command, "sh", wrap=True),
        "## Cite",
        tags.block("\n\n".join(entries), "bibtex", wrap=True) if entries else tags.paragraph("It is ours."),
    )


def _records(name: str, users: Sequence[Shelved]) -> dict[str, TaskRecord]:
    """The task with its settings to what a record holds of it."""
    records: dict[str, TaskRecord] = {}
    for shelved in users:
        for record in shelved.results.records if shelved.results else ():
            if record.task.label.partition("(")[0] == name:
                records.setdefault(record.task.label, record.task)
    return records


def _floors(name: str, records: Mapping[str, TaskRecord]) -> Iterator[str]:
    """What needs no learning, as the records counted it."""
    if not records:
        yield tags.paragraph("No committed record holds its floors; this command counts them:")
        yield tags.block(f"posenc describe {name}", "sh", wrap=True)
    for label, record in records.items():
        at = floors(record)
        sizes = sorted(at)
        shown = [n for n in sizes if n >= record.trained[1]] or sizes
        shown = shown[:: max(1, len(shown) // SIZES)]
        names = list(dict.fromkeys(floor for n in shown for floor in at[n]))
        rows = [
            (n, *(f"{at[n][floor]:.2f}" if at[n].get(floor) is not None else "–" for floor in names)) for n in shown
        ]
        yield tags.table(("size", *names), rows, f"{label}, in {record.read_by or record.metric}")
