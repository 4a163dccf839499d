"""`posenc list`: the names of each kind, and the names that an installed package fails to load."""

from __future__ import annotations

import ast
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from posenc.catalog.card import idea
from posenc.lab.cli.options import Flag
from posenc.lab.cli.output import brief, say_json, say_rows
from posenc.lab.models import kinds
from posenc.lab.spec import committed, settings
from posenc.lab.spec.abilities import ABILITIES
from posenc.lab.spec.experiment import Header
from posenc.lab.spec.experiment_file import header
from posenc.lab.spec.presets import EVIDENCE, PRESETS
from posenc.lab.spec.suites import named

KINDS = "{schemes,tasks,suites,models,experiments,presets,coordinates,stems}"
UNREADABLE = "cannot be read"
"""Text that replaces the claim of a file that is not Python."""


@dataclass(frozen=True)
class Names:
    """List the names of one kind, by default of schemes."""

    kind: Annotated[Positional[str], arg(metavar=KINDS)] = "schemes"
    """The kind of names."""
    ability: Annotated[str | None, arg(metavar="ABILITY", help_behavior_hint="")] = None
    """List only the tasks that need this ability, such as counting. `posenc list tasks` has the abilities."""
    json: Flag = False
    """Print one JSON array."""

    def __call__(self) -> int:
        makers = {"schemes": schemes, "tasks": tasks, "suites": suites, "models": models, "experiments": experiments}
        makers |= {"presets": presets, "coordinates": coordinates, "stems": stems}
        if self.kind not in makers:
            raise settings.unknown("list", self.kind, makers)
        if self.ability is not None and self.kind != "tasks":
            raise ValueError(f"--ability is for tasks, and {self.kind} have none; use `posenc list tasks --ability`.")
        rows = makers[self.kind]()
        if self.ability is not None:
            abilities = sorted({*ABILITIES, *filter(None, (row["ability"] for row in rows))})
            if self.ability not in abilities:
                raise settings.unknown("ability", self.ability, abilities)
            rows = [row for row in rows if row["ability"] == self.ability]
        if self.json:
            say_json(rows)
            return 0
        columns = [name for name, value in rows[0].items() if not isinstance(value, dict)] if rows else ["name"]
        say_rows(columns, [[brief(row[c]) for c in columns] for row in rows])
        return 0


def schemes() -> list[dict[str, Any]]:
    """One row per scheme."""
    import posenc
    from posenc.catalog.schemes import summary
    from posenc.core.scheme import SCHEMES

    return [summary(name) for name in posenc.names()] + _broken(SCHEMES, summary("nope"))


def tasks() -> list[dict[str, Any]]:
    """One row per task."""
    from posenc.lab import tasks
    from posenc.lab.tasks.task import TASKS

    pairs = [(name, tasks.parse(name)) for name in tasks.names()]
    rows = [
        {
            "name": name,
            "ability": str(t.ability),
            "layout": t.layout.value,
            "metric": t.metric,
            "directions": sorted(t.directions),
            "idea": idea(type(t)),
        }
        for name, t in pairs
    ]
    return rows + _broken(TASKS, rows[0])


def suites() -> list[dict[str, Any]]:
    """One row per suite, with its tasks and, in the same order, the largest size that each trains on."""
    from posenc.lab.tasks import suites

    rows = []
    for suite in named(settings.SUITE + name for name in suites()):
        runs = suite.runs
        cell = {"name": suite.name, "use": f"task={settings.SUITE}{suite.name}", "idea": suite.idea}
        cell |= {"model": sorted({run.model for run in runs}), "presets": list(suite.presets)}
        rows.append({**cell, "tasks": [run.task for run in runs], "lengths": [run.length for run in runs]})
    return rows


def coordinates() -> list[dict[str, Any]]:
    """One row per kind of coordinates."""
    import posenc
    from posenc.coordinates import COORDINATES

    pairs = [(name, COORDINATES.find(name)) for name in posenc.names("coordinates")]
    return [{"name": name, "use": f"rope @ {name}", "idea": idea(cls)} for name, cls in pairs]


def stems() -> list[dict[str, Any]]:
    """One row per stem, the default included."""
    from posenc.lab.models.stems import NONE, STEMS

    pairs = [(name, idea(STEMS.find(name))) for name in STEMS.names()]
    return [{"name": name, "use": f"--stem {name}", "idea": idea} for name, idea in [(NONE, "No stem."), *pairs]]


def models() -> list[dict[str, Any]]:
    """One row per model: its text, its directions, whether it reads a source, and where position can enter."""
    rows = []
    for name in kinds.MODELS.names():
        cls = kinds.MODELS.find(name)
        defaults = ", ".join(f"{f.name}={f.default!r}" for f in dataclasses.fields(cls))
        direction = {True: "causal", False: "bidirectional"}
        either = [direction[cls(bidirectional=b).causal] for b in (False, True)] if "bidirectional" in defaults else []
        cell = {"name": name, "use": f"{name}({defaults})" if defaults else name}
        cell |= {"directions": either or [direction[cls().causal]], "source": cls.source or "none"}
        rows.append({**cell, "position": "anywhere" if cls().attends else "input", "idea": idea(cls)})
    return rows


def experiments() -> list[dict[str, Any]]:
    """One row per experiment file."""
    rows = []
    for path in sorted(committed.files().values(), key=lambda p: p.stem):
        head = header_of(path)
        rows.append({"name": path.stem, "file": str(path), "idea": head.claim, "cost": head.cost})
    return rows


def header_of(path: Path) -> Header:
    """The header of an experiment file, read without running it."""
    try:
        return header(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "", path)
    except (SyntaxError, ValueError):
        return Header(UNREADABLE)


def presets() -> list[dict[str, Any]]:
    """One row per preset; in JSON also its settings, and how it differs from the publication."""
    rows = []
    for preset in PRESETS.values():
        cell = {"use": f"--preset {preset.name}", "idea": preset.idea, "source": preset.source}
        evidence = "; ".join(EVIDENCE[tag] for tag in preset.evidence)
        settled = {
            "run": dataclasses.asdict(preset.run),
            "plan": dataclasses.asdict(preset.plan),
            "left_out": preset.left_out,
        }
        rows.append({"name": preset.name, **cell, "known": evidence, "settings": settled})
    return rows


def _broken(registry: Any, like: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each name whose package fails to load, with the reason."""
    empty = {key: type(value)() for key, value in like.items()}
    return [{**empty, "name": name, "idea": f"broken: {why}"} for name, why in sorted(registry.broken.items())]
