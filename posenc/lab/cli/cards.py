"""`posenc describe` of models, presets and experiments, and which kind of thing a text names.

Every line is read from the model, its docstring, the preset or the experiment file itself, so that it stays true.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import shlex
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from posenc.lab.cli import claims, listing
from posenc.lab.cli.modules import load_named
from posenc.lab.cli.options import docs
from posenc.lab.cli.output import columns
from posenc.lab.models import kinds
from posenc.lab.results.published import count_seen
from posenc.lab.spec import committed
from posenc.lab.spec import settings as words
from posenc.lab.spec.experiment_file import executed
from posenc.lab.spec.presets import PRESETS
from posenc.lab.spec.run import Plan, Run
from posenc.language import grammar
from posenc.language.echo import echoed
from posenc.language.registry import settings

PRESET = "preset:"
"""The prefix of a preset's name if a scheme or task has the same name: preset:mqar."""
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
    by_kind |= {"preset": set(PRESETS), "experiment": set(_experiments())}
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
    """Whether `mine:Mine` is a task."""
    from posenc.lab.tasks.task import TASKS

    try:
        TASKS.find(name)
    except ValueError:
        return False
    return True


def makers(kind: str) -> tuple[Callable[[str], dict[str, Any]], Callable[[dict[str, Any]], str]]:
    """The functions that make the card of a suite, model, preset or experiment, and that write it in lines."""
    if kind == "suite":
        from posenc.lab.explain import suite_card

        return suite_card.card, suite_card.as_text
    return {"model": (model, model_as_text), "experiment": (experiment, experiment_as_text)}.get(
        kind, (preset, preset_as_text)
    )


def model(text: str) -> dict[str, Any]:
    """The card of a model, in plain values."""
    parsed = kinds.parse(text)
    row = next(row for row in listing.models() if row["name"] == parsed.name)
    run = Run(model=kinds.spec(parsed)).filled(1)
    read = ["width", "depth", *parsed.reads]
    return {
        "model": kinds.spec(parsed),
        "idea": row["idea"],
        "notes": [" ".join(p.split()) for p in inspect.cleandoc(type(parsed).__doc__ or "").split("\n\n")[1:]],
        "settings": settings(parsed),
        "settings are": docs(type(parsed)),
        "direction": "causal" if parsed.causal else "bidirectional",
        "directions": row["directions"],
        "source": parsed.source or "none",
        "position enters": EVERYWHERE if parsed.attends else ["input"],
        "reads of a run": read,
        "weights": {"each layer": parsed.weights(run), "at": {name: getattr(run, name) for name in read}},
        "another scheme may go on": parsed.goes_on,
        "use": f"posenc run --model {shlex.quote(kinds.spec(parsed))}",
    }


def model_as_text(card: dict[str, Any]) -> str:
    """A model's card in lines."""
    helps, weights = card["settings are"], card["weights"]
    shown = [f"{k}={v!r}" + (f" ({helps[k].rstrip('.')})" if k in helps else "") for k, v in card["settings"].items()]
    either = f"; {' or '.join(card['directions'])} by its setting" if len(card["directions"]) > 1 else ""
    sizes = ", ".join(f"{k} {v}" for k, v in weights["at"].items() if isinstance(v, int))
    anywhere = len(card["position enters"]) > 1
    allowed = "any scheme" if anywhere else "input schemes (sinusoidal, learned, …) or nope"
    if anywhere and card["direction"] == "bidirectional":
        allowed += " that is defined in both directions"
    facts = {
        "settings": "; ".join(shown) or "none",
        "direction": card["direction"] + either,
        "source": SOURCE[card["source"]],
        "position": f"can enter at {', '.join(card['position enters'])}: {allowed}",
        "run": f"reads {', '.join(card['reads of a run'])}",
        "weights": f"{weights['each layer']} in the matrices of a layer ({sizes})",
        "then": "another scheme can continue with its parameters" if card["another scheme may go on"] else "",
        "use": card["use"],
    }
    return _card(card["model"], card["idea"], facts.items(), card["notes"])


def preset(text: str) -> dict[str, Any]:
    """The card of a preset, in plain values."""
    name = text.strip().removeprefix(PRESET).strip()
    if name not in PRESETS:
        raise words.unknown("preset", name, PRESETS, "`posenc list presets` has all")
    row = next(row for row in listing.presets() if row["name"] == name)
    return {"preset": name, **{k: v for k, v in row.items() if k != "name"}}


def preset_as_text(card: dict[str, Any]) -> str:
    """A preset's card in lines: what it sets, and how it differs from the publication."""
    settings = card["settings"]
    facts = {
        "source": f"{card['source']} ({card['known']})",
        "run": _changed(settings["run"], Run()),
        "plan": _changed(settings["plan"], Plan()),
        "use": f"posenc run {card['use']}",
    }
    left = [("" if n else "differs", text) for n, text in enumerate(settings["left_out"])]
    return _card(card["preset"], card["idea"], [*facts.items(), *left])


def experiment(text: str) -> dict[str, Any]:
    """The card of an experiment, by its name or its file, in plain values: the header of the file, and where its
    published claims were seen."""
    path = _experiment_file(text.strip())
    head = dataclasses.asdict(listing.header_of(path))
    recorded = committed.record_of(path).is_file()
    sightings = count_seen(getattr(executed(path), "published", ()))
    return {"experiment": path.stem, "file": str(path), "recorded": recorded, "seen": sightings, **head}


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


def experiment_as_text(card: dict[str, Any]) -> str:
    """An experiment's card in lines: claim, source, where it was seen, setting, cost, command and result."""
    name = card["experiment"]
    facts = {"source": card["source"], "seen": claims.sightings(card["seen"]) if any(card["seen"].values()) else ""}
    facts |= {part: card[part] for part in ("setting", "cost", "command", "variation", "result")}
    see = name if name in committed.files() else shlex.quote(card["file"])
    facts["see"] = f"posenc table {see}; posenc plot {see}" if card["recorded"] else ""
    return _card(f"{name} (an experiment)", card["claim"], facts.items())


def _experiments() -> Iterable[str]:
    return (path.stem for folder in committed.folders() for path in folder.glob("*.py") if path.name[0] != "_")


def _card(name: str, idea: str, facts: Iterable[tuple[str, str]], notes: Iterable[str] = ()) -> str:
    """A name, an idea, facts in two columns, and paragraphs."""
    wide = {"width": min(columns() or 118, 118), "break_on_hyphens": False, "break_long_words": False}
    lines = [textwrap.fill(f"  {k:<12} {v}", subsequent_indent=" " * 15, **wide) for k, v in facts if v]
    paragraphs = (textwrap.fill(n, 100, initial_indent="  ", subsequent_indent="  ") for n in notes)
    return "\n\n".join([f"{name}\n{textwrap.indent(idea, '  ')}", "\n".join(lines), *paragraphs])


def _changed(values: dict[str, Any], usual: Run | Plan) -> str:
    """Task, scheme, model, steps, and every setting that differs from its default."""
    return ", ".join(f"{k}={_plain(v)}" for k, v in values.items() if k in ALWAYS or v != getattr(usual, k))


def _plain(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
