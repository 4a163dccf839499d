"""The cards that `posenc describe` shows, and which kind of thing a text names.

Every line is read from the model, its docstring, the preset or the experiment file itself, so that it stays true.
"""

from __future__ import annotations

import dataclasses
import difflib
import shlex
from pathlib import Path
from typing import Any

from posenc.catalog.card import Card, Fact, flowing, paragraphs
from posenc.lab.cli import claims, listing
from posenc.lab.cli.options import as_typed, docs
from posenc.lab.models import kinds
from posenc.lab.results.published import count_seen
from posenc.lab.spec import committed
from posenc.lab.spec import settings as words
from posenc.lab.spec.experiment_file import executed
from posenc.lab.spec.modules import load_named
from posenc.lab.spec.presets import PRESETS
from posenc.lab.spec.run import Plan, Run
from posenc.language import grammar
from posenc.language.echo import echoed
from posenc.language.registry import settings

PRESET = "preset:"
"""Prefix of a preset's name if a scheme or task has the same name, as in `preset:mqar`."""
EVERYWHERE = ["input", "query and key", "score", "value"]
ALWAYS = ("task", "scheme", "model", "steps")
SOURCE = {
    **{"none": "not read", "where there is one": "read if the task has one"},
    **{"always": "read; the task must have one"},
}


def kind_of(text: str) -> str:
    """The one kind of thing that a text names, as `kinds_of`. Raises `ValueError` for a scheme that is a task too."""
    both = [kind for kind in kinds_of(text) if kind in ("scheme", "task")]
    if len(both) > 1:
        raise ValueError(f"{text!r} names a scheme and a task; rename the one in your package.")
    return kinds_of(text)[0]


def kinds_of(text: str) -> list[str]:
    """The kinds of thing that a text names, of "scheme", "task", "model", "preset" and "experiment", in this order; or
    "suite".

    An unknown name gets the kind of the nearest known one. The module of `mine:Mine` is imported, since the user named
    it.
    """
    from posenc.coordinates import COORDINATES
    from posenc.core.scheme import SCHEMES
    from posenc.lab.tasks.task import TASKS

    if words.is_suite(text):
        return ["suite"]
    if text.strip().startswith(PRESET):
        return ["preset"]
    if text.strip().endswith(".py"):
        return ["experiment"]
    tree = grammar.read(text)
    load_named([text])
    if not isinstance(tree, grammar.Call):
        return ["scheme"]  # sums, lists and coordinates
    if ":" in tree.name:
        return ["task" if _is_task(tree.name) else "scheme"]
    registries = {"scheme": SCHEMES, "task": TASKS, "model": kinds.MODELS}
    by_kind = {kind: {*registry.names(), *registry.broken} for kind, registry in registries.items()}
    shipped = {path.stem for folder in committed.folders() for path in folder.glob("*.py") if path.name[0] != "_"}
    by_kind |= {"preset": set(PRESETS), "experiment": shipped}
    named = [kind for kind, names in by_kind.items() if tree.name in names]
    if tree != grammar.Call(tree.name):  # presets and experiments have no settings
        named = [kind for kind in named if kind in registries] or named
    if tree.name == "window" or tree.name in COORDINATES.names():
        stands = "beside a scheme: 'rope + window(512)'" if tree.name == "window" else f"after @: 'rope @ {tree.name}'"
        raise ValueError(f"{echoed(text)} does not stand alone, but {stands}.")
    if not named:
        near = difflib.get_close_matches(tree.name, sorted(set().union(*by_kind.values())), 1, 0.5)
        named = [kind for kind, names in by_kind.items() if set(near) & names]
        return named[:1] or ["scheme"]
    return named


def _is_task(name: str) -> bool:
    """Tell whether `mine:Mine` is a task."""
    from posenc.lab.tasks.task import TASKS

    try:
        TASKS.find(name)
    except ValueError:
        return False
    return True


def build(kind: str, text: str, **options: Any) -> Card:
    """The card of a text as one kind of thing; `options` are the sizes of a scheme, or that of a task's example."""
    if kind == "suite":
        from posenc.lab.explain.task_card import suite_card

        return suite_card(text)
    builders = {"scheme": scheme, "task": task, "model": model, "experiment": experiment}
    return builders.get(kind, preset)(text, **options)


def scheme(text: str, dims: Any = None) -> Card:
    """Return the card of a scheme, with the experiments whose records have it, and what the atlas measured of it. For a
    sum these are the experiments with all of its schemes."""
    from posenc.catalog.schemes import TYPICAL, card
    from posenc.lab.results.atlas_cells import measured
    from posenc.lab.spec.committed import experiments_with_schemes

    described = card(text, TYPICAL if dims is None else dims)
    names = [part.name.partition("(")[0] for part in described.parts or [described]]
    more = _recorded(experiments_with_schemes(names)), Fact("measured", measured(described.name))
    return dataclasses.replace(described, facts=(*described.facts, *more))


def task(text: str, size: int | None = None, windows: tuple[int, ...] | None = None) -> Card:
    """Return the card of a task, with its floors and the experiments whose records have it. For a source the floors of
    windows are added."""
    from posenc.lab.explain import task_card
    from posenc.lab.spec.committed import experiments_with_task

    described = task_card.card(text, size, task_card.floor_table(text, windows))
    experiments = experiments_with_task(described.name.partition("(")[0])
    return dataclasses.replace(described, facts=(*described.facts, _recorded(experiments)))


def _recorded(experiments: list[str]) -> Fact:
    return Fact("experiments", experiments, ", ".join(experiments) or "in no committed record")


def model(text: str) -> Card:
    """The card of a model."""
    parsed = kinds.parse(text)
    row = next(row for row in listing.models() if row["name"] == parsed.name)
    run, spec, source = Run(model=kinds.spec(parsed)).filled(1), kinds.spec(parsed), parsed.source or "none"
    reads, values, helps = ["width", "depth", *parsed.reads], settings(parsed), docs(type(parsed))
    shown = (f"{k}={v!r}" + (f" ({helps[k].rstrip('.')})" if k in helps else "") for k, v in values.items())
    direction = "causal" if parsed.causal else "bidirectional"
    either = f"; {' or '.join(row['directions'])} by its setting" if len(row["directions"]) > 1 else ""
    sites = EVERYWHERE if parsed.attends else ["input"]
    allowed = "any scheme" if parsed.attends else "input schemes (sinusoidal, learned, …) or nope"
    allowed += " that is defined in both directions" * (parsed.attends and not parsed.causal)
    count, at = parsed.weights(run), {name: getattr(run, name) for name in reads}
    sizes = ", ".join(f"{k} {v}" for k, v in at.items() if isinstance(v, int))
    goes_on = parsed.goes_on
    facts = (
        Fact("settings", values, "; ".join(shown) or "none"),
        Fact("settings are", helps, ""),
        Fact("direction", direction, direction + either),
        Fact("directions", row["directions"], ""),
        Fact("source", source, SOURCE[source]),
        Fact("position enters", sites, f"can enter at {', '.join(sites)}: {allowed}", "position"),
        Fact("reads of a run", reads, f"reads {', '.join(reads)}", "run"),
        Fact("weights", {"each layer": count, "at": at}, f"{count} in the matrices of a layer ({sizes})"),
        Fact("another scheme may go on", goes_on, "another scheme can continue with its parameters" * goes_on, "then"),
        Fact("use", f"posenc run --model {shlex.quote(spec)}"),
    )
    notes = tuple(flowing(p) for p in paragraphs(type(parsed))[1:])
    return Card("model", spec, row["idea"], facts=facts, notes=notes)


def preset(text: str) -> Card:
    """The card of a preset: what it sets, and how it differs from the publication."""
    name = text.strip().removeprefix(PRESET).strip()
    if name not in PRESETS:
        raise words.unknown("preset", name, PRESETS, "`posenc list presets` has all")
    row = next(row for row in listing.presets() if row["name"] == name)
    run, plan, left_out = (row["settings"][part] for part in ("run", "plan", "left_out"))
    facts = (
        Fact("source", row["source"], f"{row['source']} ({row['known']})"),
        Fact("known", row["known"], ""),
        Fact("settings", row["settings"], ""),
        Fact("", _changed(run, Run()), label="run"),
        Fact("", _changed(plan, Plan()), label="plan"),
        Fact("use", row["use"], f"posenc run {row['use']}"),
        *(Fact("", text, label="" if n else "differs") for n, text in enumerate(left_out)),
    )
    return Card("preset", name, row["idea"], facts=facts)


def experiment(text: str) -> Card:
    """The card of an experiment, by its name or its file: the header of the file, and what its published claims were
    checked against."""
    path = _experiment_file(text.strip())
    head, name = listing.header_of(path), path.stem
    recorded = committed.record_of(path).is_file()
    sightings = count_seen(getattr(executed(path), "published", ()))
    see = name if name in committed.files() else shlex.quote(str(path))
    facts = (
        Fact("file", str(path), ""),
        Fact("claim", head.claim, ""),
        Fact("source", head.source),
        Fact("seen", sightings, claims.sightings(sightings) if any(sightings.values()) else "", "checked against"),
        *(Fact(part, getattr(head, part)) for part in ("setting", "cost", "command", "variation", "result")),
        Fact("recorded", recorded, f"posenc table {see}; posenc plot {see}" if recorded else "", "see"),
    )
    return Card("experiment", name, head.claim, facts=facts, title=f"{name} (an experiment)")


def _experiment_file(text: str) -> Path:
    """The experiment file of a name, or a path that ends in .py. Raises `ValueError` where there is none."""
    if not text.endswith(".py"):
        files = committed.files()
        if text not in files:
            raise words.unknown("experiment", text, sorted(files), "`posenc list experiments` has all")
        return files[text]
    path = Path(text)
    if not path.is_file():
        raise ValueError(f"There is no experiment file at {echoed(text)}; `posenc list experiments` names those here.")
    if listing.header_of(path).claim in ("", listing.UNREADABLE):
        raise ValueError(f"{echoed(text)} has no docstring that begins with a claim, so it describes no experiment.")
    return path


def _changed(values: dict[str, Any], usual: Run | Plan) -> str:
    """Task, scheme, model, steps, and every setting that differs from its default."""
    return ", ".join(f"{k}={as_typed(v)}" for k, v in values.items() if k in ALWAYS or v != getattr(usual, k))
