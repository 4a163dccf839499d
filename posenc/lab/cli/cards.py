"""What `posenc describe` says of models and published settings, and which kind of thing a text names.

All is read off the model, its docstring and the preset itself, so that no second list can disagree.
"""

from __future__ import annotations

import difflib
import inspect
import shlex
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

from posenc.lab.cli import listing
from posenc.lab.cli.options import docs
from posenc.lab.models import kinds
from posenc.lab.spec import settings as words
from posenc.lab.spec.presets import PRESETS
from posenc.lab.spec.run import Plan, Run
from posenc.language import grammar
from posenc.language.registry import settings

PRESET = "preset:"
"""Marks a preset whose name is a scheme's or a task's too: preset:mqar."""
EVERYWHERE = ["input", "query and key", "score", "value"]
ALWAYS = ("task", "scheme", "model", "steps")
SOURCE = {"none": "none is read", "where there is one": "read where a task has one", "always": "a task must have one"}


def kind_of(text: str) -> str:
    """Whether a text names a "scheme", "task", "suite", "model" or "preset"; if none, which of them has the nearest."""
    from posenc.core.scheme import SCHEMES
    from posenc.lab.tasks.task import TASKS

    if words.is_suite(text):
        return "suite"
    if text.strip().startswith(PRESET):
        return "preset"
    tree = grammar.read(text)
    if not isinstance(tree, grammar.Call):
        return "scheme"  # sums, lists and coordinates
    registries = {"scheme": SCHEMES, "task": TASKS, "model": kinds.MODELS}
    known = {kind: {*registry.names(), *registry.broken} for kind, registry in registries.items()}
    known["preset"] = set(PRESETS).difference(*known.values())
    found = [kind for kind, names in known.items() if tree.name in names]
    if len(found) > 1:
        raise ValueError(f"{tree.name!r} names a {' and a '.join(found)}; rename the one that your package brings.")
    if not found:
        near = difflib.get_close_matches(tree.name, sorted(set().union(*known.values())), 1, 0.5)
        found = [kind for kind, names in known.items() if set(near) & names]
    return found[0] if found else "scheme"


def makers(kind: str) -> tuple[Callable[[str], dict[str, Any]], Callable[[dict[str, Any]], str]]:
    """What makes the card of a suite, a model or a preset, and what writes it in lines."""
    if kind == "suite":
        from posenc.lab.explain import suite_card

        return suite_card.card, suite_card.as_text
    return (model, model_as_text) if kind == "model" else (preset, preset_as_text)


def model(text: str) -> dict[str, Any]:
    """What a model is, in plain values."""
    one = kinds.parse(text)
    row = next(row for row in listing.models() if row["name"] == one.name)
    run = Run(model=kinds.spec(one)).filled(1)
    read = ["width", "depth", *one.reads]
    return {
        "model": kinds.spec(one),
        "idea": row["idea"],
        "notes": [" ".join(p.split()) for p in inspect.cleandoc(type(one).__doc__ or "").split("\n\n")[1:]],
        "settings": settings(one),
        "settings are": docs(type(one)),
        "direction": "causal" if one.causal else "bidirectional",
        "directions": row["directions"],
        "source": one.source or "none",
        "position enters": EVERYWHERE if one.attends else ["input"],
        "reads of a run": read,
        "weights": {"each layer": one.weights(run), "at": {name: getattr(run, name) for name in read}},
        "another scheme may go on": one.goes_on,
        "use": f"posenc run --model {shlex.quote(kinds.spec(one))}",
    }


def model_as_text(found: dict[str, Any]) -> str:
    """A model's card in lines."""
    told, weights = found["settings are"], found["weights"]
    given = [f"{k}={v!r}" + (f" ({told[k].rstrip('.')})" if k in told else "") for k, v in found["settings"].items()]
    both = f"; {' or '.join(found['directions'])} by its setting" if len(found["directions"]) > 1 else ""
    sizes = ", ".join(f"{k} {v}" for k, v in weights["at"].items() if isinstance(v, int))
    anywhere = len(found["position enters"]) > 1
    allowed = "any scheme" if anywhere else "schemes that act on the input alone, or nope"
    if anywhere and found["direction"] == "bidirectional":
        allowed += " that is defined both ways"
    facts = {
        "settings": "; ".join(given) or "none",
        "direction": found["direction"] + both,
        "source": SOURCE[found["source"]],
        "position": f"may enter at {', '.join(found['position enters'])}: {allowed}",
        "of a run": f"reads {', '.join(found['reads of a run'])}",
        "weights": f"{weights['each layer']} in the matrices of a layer ({sizes})",
        "then": "another scheme may go on with its parameters" if found["another scheme may go on"] else "",
        "use": found["use"],
    }
    return _card(found["model"], found["idea"], facts.items(), found["notes"])


def preset(text: str) -> dict[str, Any]:
    """What a published setting is, in plain values."""
    name = text.strip().removeprefix(PRESET).strip()
    if name not in PRESETS:
        raise words.unknown("preset", name, PRESETS)
    row = next(row for row in listing.presets() if row["name"] == name)
    return {"preset": name, **{k: v for k, v in row.items() if k != "name"}}


def preset_as_text(found: dict[str, Any]) -> str:
    """A preset's card in lines: what it sets, and what it leaves out."""
    said = found["settings"]
    facts = {
        "source": f"{found['source']} ({found['known']})",
        "run": _changed(said["run"], Run()),
        "plan": _changed(said["plan"], Plan()),
        "use": f"posenc run {found['use']}",
    }
    left = [("" if n else "not as there", text) for n, text in enumerate(said["left_out"])]
    return _card(found["preset"], found["idea"], [*facts.items(), *left])


def _card(name: str, idea: str, facts: Iterable[tuple[str, str]], notes: Iterable[str] = ()) -> str:
    """A name, an idea, what holds of it in two columns, and paragraphs."""
    wide = {"width": 118, "break_on_hyphens": False, "break_long_words": False}
    lines = [textwrap.fill(f"  {k:<12} {v}", subsequent_indent=" " * 15, **wide) for k, v in facts if v]
    said = (textwrap.fill(n, 100, initial_indent="  ", subsequent_indent="  ") for n in notes)
    return "\n\n".join([f"{name}\n  {idea}", "\n".join(lines), *said])


def _changed(given: dict[str, Any], usual: Run | Plan) -> str:
    """What is done, by what and how, and the settings that are not at their defaults."""
    told = (f"{k}={_plain(v)}" for k, v in given.items() if k in ALWAYS or v != getattr(usual, k))
    return ", ".join(told)


def _plain(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
