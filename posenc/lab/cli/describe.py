"""`posenc describe` and `posenc cite`: one scheme, task, suite, model, preset or experiment, and its sources."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from posenc.catalog.card import Card
from posenc.lab.cli import cards
from posenc.lab.cli.options import CommandForm, Flag, Forms
from posenc.lab.cli.output import columns, say, say_json
from posenc.lab.spec.settings import value

WIDEST = 118
"""The columns that a card takes at most."""
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
        from posenc.core.scheme import Dims

        dims = Dims(self.width, self.heads, self.head, self.trained, self.longest)
        return show(self.scheme, cards.scheme(self.scheme, dims), self.json)


@dataclass(frozen=True)
class DescribeTask:
    """A task: a worked example, the answer of its oracle, floors, sizes, settings, coordinates, sources."""

    task: Annotated[Positional[str], arg(metavar="TASK")]
    """A task's text: copy, or "token_k_back(k=3)"."""
    size: Annotated[int | None, arg(metavar="INT", help_behavior_hint="")] = None
    """The size of the example. Default: a small one."""
    windows: Annotated[str | None, arg(metavar="INT,...", help_behavior_hint="")] = None
    """For a source with exact losses: the windows, in tokens, of predictors to show, such as 8,32. Default:
    1,4,16,64."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        windows = None if self.windows is None else value("sizes", self.windows)
        return show(self.task, cards.task(self.task, self.size, windows), self.json)


@dataclass(frozen=True)
class DescribeOther:
    """A suite: its tasks and their default settings. A model: idea, settings, the sites where position can enter. A
    preset: its source, its settings, and how it differs from the publication. An experiment: claim, source, result."""

    what: Annotated[Positional[str], arg(metavar="{suite:SUITE,MODEL,PRESET,EXPERIMENT}")]
    """A suite (suite:quick), a model (lstm), a preset (ruoss), or an experiment (counting or
    experiments/counting.py)."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        return show(self.what, cards.build(cards.kinds_of(self.what)[0], self.what), self.json)


@dataclass(frozen=True)
class DescribePreset:
    """A preset by its name, whatever else has that name: its source, its settings, how it differs from the
    publication."""

    preset: Annotated[Positional[str], arg(metavar="PRESET")]
    """The name of a preset: mqar."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        return show(cards.PRESET + self.preset, cards.preset(self.preset), self.json)


_FORMS = {
    "scheme": CommandForm(DescribeScheme, "SCHEME"),
    "task": CommandForm(DescribeTask, "TASK"),
    "": CommandForm(DescribeOther, "suite:SUITE, MODEL, PRESET or EXPERIMENT"),
    "preset": CommandForm(DescribePreset, "preset", literal=True),
}


def _choose(text: str) -> CommandForm:
    """The form of the command that a first word selects."""
    if text == "preset":
        return _FORMS["preset"]
    kind = cards.kinds_of(text)[0]
    return _FORMS[kind if kind in ("scheme", "task") else ""]


DESCRIBE = Forms(tuple(_FORMS.values()), _choose)


def show(name: str, card: Card, json: bool) -> int:
    """Print the card of a name as one kind of thing, and after it those of the others that it names."""
    others = [cards.build(kind, name) for kind in cards.kinds_of(name) if kind != card.kind]
    if json:
        also = {other.kind: other.as_dict() for other in others}
        say_json(card.as_dict() | ({"also": also} if also else {}))
        return 0
    width = None if (room := columns()) is None else min(room, WIDEST)
    texts = [card.as_text(width)]
    for other in others:
        texts += [f"{name.strip()} is also {_a(other.kind)}:", other.as_text(width)]
    say("\n\n".join(texts))
    return 0


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
            cards.build(kinds[0], self.what)  # an unknown name gets the nearest
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
        from posenc.catalog.schemes import cite
    return cite(text)


def _a(kind: str) -> str:
    return f"an {kind}" if kind == "experiment" else f"a {kind}"
