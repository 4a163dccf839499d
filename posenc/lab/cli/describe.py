"""`posenc describe` and `posenc cite`: one scheme, task, suite, model, preset or experiment, and its sources."""

from __future__ import annotations

import shlex
import textwrap
from dataclasses import dataclass
from typing import Annotated, Any

from tyro.conf import Positional, arg

from posenc.lab.cli import cards
from posenc.lab.cli.options import CommandForm, Flag, Forms
from posenc.lab.cli.output import brief, say, say_json

Spec = Annotated[Positional[str], arg(metavar="SCHEME or TASK")]


@dataclass(frozen=True)
class DescribeScheme:
    """A scheme: idea, equation, where it enters attention, settings, parameters, test results, sources."""

    scheme: Annotated[Positional[str], arg(metavar="SCHEME")]
    """A scheme's text: rope, or "rope(base=500000.0) + alibi"."""
    width: int = 64
    """Features of the residual stream, for which parameters are counted."""
    heads: int = 4
    """Query heads."""
    head: int = 16
    """Features of one head."""
    trained: int = 40
    """The longest sequence of training."""
    longest: int = 160
    """The size of tables."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        from posenc.catalog import describe
        from posenc.core.scheme import Dims

        card = describe(self.scheme, Dims(self.width, self.heads, self.head, self.trained, self.longest))
        show(self.scheme, "scheme", _with_experiments(card), self.json)
        return 0


@dataclass(frozen=True)
class DescribeTask:
    """A task: a worked example, the answer of its oracle, floors, sizes, settings, coordinates, sources."""

    task: Annotated[Positional[str], arg(metavar="TASK")]
    """A task's text: copy, or "token_k_back(k=3)"."""
    size: Annotated[int | None, arg(metavar="INT", help_behavior_hint="")] = None
    """The size of the example. Default: a small one."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        show(self.task, "task", _task_card(self.task, self.size), self.json)
        return 0


@dataclass(frozen=True)
class DescribeOther:
    """A suite: its tasks and their default settings. A model: idea, settings, the sites where position can enter. A
    preset: its source, its settings, and how it differs from the publication. An experiment: claim, source, result."""

    what: Annotated[Positional[str], arg(metavar="{suite:SUITE,MODEL,PRESET,EXPERIMENT}")]
    """suite:quick; a model, lstm; a preset, ruoss, or preset:mqar for it alone where a task has the same name; an
    experiment, counting or experiments/counting.py."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        kind = cards.kinds_of(self.what)[0]
        show(self.what, kind, cards.makers(kind)[0](self.what), self.json)
        return 0


_SCHEME, _TASK = CommandForm(DescribeScheme, "SCHEME"), CommandForm(DescribeTask, "TASK")
_OTHER = CommandForm(DescribeOther, "suite:SUITE, MODEL, PRESET or EXPERIMENT")
DESCRIBE = Forms(
    (_SCHEME, _TASK, _OTHER), lambda text: {"scheme": _SCHEME, "task": _TASK}.get(cards.kinds_of(text)[0], _OTHER)
)


def show(name: str, kind: str, card: dict[str, Any], json: bool) -> None:
    """Print the card of a name as one kind of thing, and after it those of the others that it names."""
    also = {other: _card(other, name) for other in cards.kinds_of(name) if other != kind}
    if json:
        say_json(card | ({"also": also} if also else {}))
        return
    parts = [_as_text(kind, card)]
    for other, other_card in also.items():
        parts += [f"{name.strip()} is also {_a(other)}:", _as_text(other, other_card)]
    say("\n\n".join(parts))


@dataclass(frozen=True)
class Cite:
    """BibTeX of everything in a scheme, or of a task."""

    what: Spec
    """A scheme's text, rope or "rope + alibi", or a task's: copy."""
    json: Flag = False
    """Print a JSON array of entries."""

    def __call__(self) -> int:
        kinds = cards.kinds_of(self.what)
        cited = [kind for kind in kinds if kind in ("scheme", "task")]
        if not cited:
            cards.makers(kinds[0])[0](self.what)  # an unknown name gets the nearest
            command = f"posenc describe {shlex.quote(self.what)}"
            raise ValueError(f"{self.what!r} is {_a(kinds[0])}; BibTeX exists for schemes and tasks; see `{command}`.")
        entries = "\n\n".join(_cite(kind, self.what) for kind in cited)
        if self.json:
            say_json(entries.split("\n\n"))
        else:
            say(entries)
        return 0


def _cite(kind: str, text: str) -> str:
    if kind == "task":
        from posenc.lab.explain.task_card import cite
    else:
        from posenc.catalog import cite
    return cite(text)


def _a(kind: str) -> str:
    return f"an {kind}" if kind == "experiment" else f"a {kind}"


def _card(kind: str, text: str) -> dict[str, Any]:
    """The card of a name as one kind of thing."""
    if kind == "scheme":
        from posenc.catalog import describe

        return _with_experiments(describe(text))
    return _task_card(text) if kind == "task" else cards.makers(kind)[0](text)


def _as_text(kind: str, card: dict[str, Any]) -> str:
    if kind == "scheme":
        return "\n\n".join(_scheme_as_text(part) for part in [card, *card.get("parts", ())])
    if kind == "task":
        from posenc.lab.explain import task_card

        return task_card.as_text(card, card["floors"])
    return cards.makers(kind)[1](card)


def _task_card(text: str, size: int | None = None) -> dict[str, Any]:
    from posenc.lab.explain import task_card
    from posenc.lab.results.recorded import experiments_with_task

    card = task_card.card(text, size)
    experiments = experiments_with_task(card["task"].partition("(")[0])
    return {**card, "experiments": experiments, "floors": task_card.floor_table(text)}


def _with_experiments(card: dict[str, Any]) -> dict[str, Any]:
    """The card of a scheme with the experiments whose records have it, those of a sum with all of its schemes, and what
    the atlas measured of it."""
    from posenc.lab.results.atlas_cells import measured
    from posenc.lab.results.recorded import experiments_with_schemes

    names = [part["scheme"].partition("(")[0] for part in card.get("parts", [card])]
    return {**card, "experiments": experiments_with_schemes(names), "measured": measured(card["scheme"])}


def _scheme_as_text(card: dict[str, Any]) -> str:
    count = card["parameters"]
    dims = count["dims"]
    sizes = f"(width {dims['width']}, {dims['heads']} heads, trained on {dims['trained']}, longest {dims['longest']})"
    lines = [card["scheme"], *([f"  {card['idea']}"] if "idea" in card else [])]
    lines += ["", *(f"      {line}" for line in card["equation"].splitlines()), ""] if card.get("equation") else []
    facts = {
        "enters at": ", ".join(card["enters"]) or "nowhere",
        "parameters": f"{count['each layer']} in each layer, {count['shared']} shared by all {sizes}",
        "direction": f"causal only: {card['causal only']}" if card["causal only"] else "causal and bidirectional",
        "kernel": card["kernel class"],
        "cache": card["cache"],
        **{k: card[k] for k in ("window", "layers", "coordinates", "refused at these dims") if card.get(k)},
    }
    if "idea" in card:
        settings = ", ".join(f"{k}={v!r}" for k, v in card["settings"].items())
        facts |= {"settings": settings or "none", "family": card["family"], "score reads": card["reads"]}
        facts |= {"beyond L": card["extrapolates"] or "not stated", "checked": _verified(card["proof"])}
        facts |= {"cite": ", ".join(card["cite"]) or "nothing to cite"}
    if "experiments" in card:
        facts["experiments"] = ", ".join(card["experiments"]) or "in no committed record"
    if card.get("measured"):
        facts["measured"] = card["measured"]
    lines += [f"  {name:<12} {brief(value)}" for name, value in facts.items()]
    notes = (textwrap.fill(n, 100, initial_indent="  ", subsequent_indent="  ") for n in card.get("notes", ()))
    return "\n\n".join(["\n".join(lines), *notes])


def _verified(proof: dict[str, Any]) -> str:
    """The test results of a scheme, from the committed record."""
    parts = []
    if golden := proof.get("golden"):
        parts.append(f"{len(golden['cases'])} cases of {'; '.join(golden['sources'])} within {golden['largest']:.0e}")
    if oracle := proof.get("oracle"):
        parts.append(f"its equation in float64 within {oracle['largest']:.0e}")
    if contract := proof.get("contract"):
        parts.append(f"{contract['holds']} of {contract['applies']} properties that apply")
    return "; ".join(parts) or "no test result is recorded"
