"""One card for each scheme, task, model, preset, suite and experiment; as text, JSON or HTML."""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from dataclasses import dataclass
from html import escape
from typing import Any

_FENCE = re.compile(r"```bibtex\n(.*?)```", re.DOTALL)
_ENTRY = re.compile(r"^@\w+\{.*?(?=^@|^```|\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Fact:
    """One thing about what a card describes."""

    key: str
    """Its name in JSON; empty where JSON does not have it."""
    value: Any
    text: Any = None
    """Text for people, the value itself unless given. It is empty if only programs read the fact."""
    label: Any = None
    """Label before it; the key unless given."""
    is_block: bool = False
    """True if its text is lines that are shown as they are, apart from the other facts."""

    def __post_init__(self):
        value = ", ".join(self.value) or "none" if isinstance(self.value, list) and self.text is None else self.value
        object.__setattr__(self, "text", str(value or "") if self.text is None else self.text)
        object.__setattr__(self, "label", self.key if self.label is None else self.label)


@dataclass(frozen=True)
class Card:
    """Facts about one thing under its name."""

    kind: str
    name: str
    idea: str
    equation: str = ""
    """Lines that are shown as they are."""
    facts: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()
    """Paragraphs."""
    cite: tuple[str, ...] | None = None
    """The keys of its BibTeX entries; None for what names its source in another way."""
    parts: tuple[Card, ...] = ()
    title: str = ""
    """Title above it in place of the name."""

    def as_dict(self) -> dict[str, Any]:
        """The card in plain values, as `--json` prints it."""
        plain = {self.kind: self.name, "idea": self.idea, "equation": self.equation, "notes": list(self.notes)}
        plain |= {fact.key: fact.value for fact in self.facts if fact.key}
        plain |= {} if self.cite is None else {"cite": list(self.cite)}
        return plain | ({"parts": [part.as_dict() for part in self.parts]} if self.parts else {})

    def as_text(self, columns: int | None = None) -> str:
        """The card in lines: facts in two columns, as wide as `columns`, or whole where there are none."""
        blocks = ["\n".join([self.title or self.name, *([f"  {self.idea}"] * bool(self.idea))])]
        blocks += [textwrap.indent(self.equation, " " * 6)] * bool(self.equation)
        blocks += [_block(fact) for fact in self.facts if fact.is_block]
        rows = [_row(fact.label, fact.text, columns) for fact in self._lines()]
        blocks += ["\n".join(rows)] * bool(rows)
        blocks += [textwrap.fill(n, 100, initial_indent="  ", subsequent_indent="  ") for n in self.notes]
        return "\n\n".join([*blocks, *(part.as_text(columns) for part in self.parts)])

    def as_html(self) -> str:
        """The card as an `article` without style or links; whatever it holds is escaped."""
        body = [f"<h1>{escape(self.title or self.name)}</h1>"]
        body += [f"<p>{escape(self.idea)}</p>"] * bool(self.idea)
        body += [f"<pre>{escape(self.equation)}</pre>"] * bool(self.equation)
        blocks = (fact for fact in self.facts if fact.is_block)
        body += [f"<h2>{escape(b.label)}</h2>\n<pre>{escape(b.text)}</pre>" for b in blocks]
        rows = [f"<dt>{escape(fact.label)}</dt>\n<dd>{escape(fact.text)}</dd>" for fact in self._lines()]
        body += ["\n".join(["<dl>", *rows, "</dl>"])] * bool(rows)
        body += [f"<p>{escape(note)}</p>" for note in self.notes]
        return "\n".join(["<article>", *body, *(part.as_html() for part in self.parts), "</article>"])

    def _lines(self) -> list[Fact]:
        """The facts of one line, sources at the end."""
        sources = [] if self.cite is None else [Fact("cite", None, ", ".join(self.cite) or "nothing to cite")]
        return [fact for fact in self.facts if fact.text and not fact.is_block] + sources


def _block(fact: Fact) -> str:
    """A fact of several lines, under its label."""
    indented = textwrap.indent(fact.text, " " * (6 if fact.label else 2))
    return f"  {fact.label}:\n{indented}" if fact.label else indented


def _row(label: str, text: str, columns: int | None) -> str:
    """A fact under its label; paragraphs of its text begin a line each."""
    first, *others = text.split("\n\n")
    lines = [f"  {label:<12} {first}", *(" " * 15 + paragraph for paragraph in others)]
    if columns is None:
        return "\n".join(lines)
    fill = functools.partial(
        textwrap.fill, width=columns, subsequent_indent=" " * 15, break_on_hyphens=False, break_long_words=False
    )
    return "\n".join(map(fill, lines))


def settings_fact(values: dict[str, Any]) -> Fact:
    """The settings of what a card describes, as a call has them."""
    return Fact("settings", values, ", ".join(f"{name}={value!r}" for name, value in values.items()) or "none")


def uncited(name: str) -> str:
    """Return the BibTeX text for a source that is not a publication."""
    return f"% {name}: its source names no publication to cite."


def paragraphs(thing: type) -> list[str]:
    """The paragraphs of a docstring as they stand, BibTeX left out; the first is the idea."""
    doc = _ENTRY.sub("", _FENCE.sub("", inspect.cleandoc(thing.__doc__ or ""))).strip()
    return [p for p in re.split(r"\n\s*\n", doc) if p]


def flowing(paragraph: str) -> str:
    """A paragraph as one line."""
    return " ".join(paragraph.split())


def idea(thing: type) -> str:
    """The first paragraph of a docstring, as one line."""
    return flowing("".join(paragraphs(thing)[:1]))


def bibtex(doc: str | None) -> list[str]:
    """The BibTeX entries in a docstring."""
    return [entry.strip() for entry in _ENTRY.findall(inspect.cleandoc(doc or ""))]


def keys(entries: list[str]) -> tuple[str, ...]:
    """The keys by which BibTeX entries are cited."""
    return tuple(re.findall(r"@\w+\{([^,\s]+),", "\n".join(entries)))
