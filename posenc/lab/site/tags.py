"""Pieces of a page: Markdown around HTML in which every text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple


class SitePage(NamedTuple):
    """A page of Markdown by its path in the site, such as "schemes/rope.md"."""

    path: str
    text: str


WIDE = ("toc",)
"""Hidden beside a page of wide tables."""
ALONE = ("toc", "navigation")
"""Hidden beside a page that stands for itself."""


class Link(NamedTuple):
    """A text that leads to another page, relative to the page that shows it."""

    text: str
    target: str


def page(path: str, title: str, *parts: str, hide: Sequence[str] = ()) -> SitePage:
    """A page of parts, each a block of its own; `hide` are the columns beside it that it does without."""
    quoted = title.replace("\\", "\\\\").replace('"', '\\"')
    head = ["---", f'title: "{quoted}"', *(["hide:"] if hide else []), *(f"  - {column}" for column in hide), "---"]
    return SitePage(path, "\n\n".join(["\n".join(head), *filter(None, parts)]) + "\n")


def paragraph(text: object, kind: str = "") -> str:
    """A paragraph of text, in which what stands between backticks is code."""
    return f"<p{_kind(kind)}>{inline(text)}</p>" if text else ""


def paragraphs(text: str) -> str:
    """Paragraphs of text with an empty line between them."""
    return "\n".join(map(paragraph, text.split("\n\n")))


def inline(text: object) -> str:
    """A text as HTML, in which what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(str(text)))


def block(text: str, language: str = "text", wrap: bool = False) -> str:
    """Lines as they are, with a button that copies them; those that are too long scroll, or go on below."""
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    kind = f" {{ .{language} .wrap }}" if wrap else language
    return f"{fence}{kind}\n{text.rstrip()}\n{fence}"


def tabs(texts: dict[str, str], language: str = "python") -> str:
    """Blocks of code under one another's names, of which one is shown."""
    parts = []
    for name, text in texts.items():
        lines = block(text, language).splitlines()
        parts.append("\n".join([f'=== "{name}"', "", *(f"    {line}".rstrip() for line in lines)]))
    return "\n\n".join(parts)


def cell(value: object) -> str:
    """A value of a table: a link, or a text."""
    if isinstance(value, Link):
        return f'<a href="{escape(value.target)}">{escape(value.text)}</a>'
    if isinstance(value, (list, tuple)):
        return ", ".join(map(cell, value))
    return inline(value)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """A table that scrolls by itself where it is wider than the page."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    lines = [f"<tr>{''.join(f'<td>{cell(value)}</td>' for value in row)}</tr>" for row in rows]
    named = f' role="region" aria-label="{escape(caption or columns[0])}"'
    parts = [f'<div class="scroll" tabindex="0"{named}>', '<table class="rows">']
    parts += [f"<caption>{escape(caption)}</caption>"] * bool(caption)
    return "\n".join([*parts, f"<thead><tr>{head}</tr></thead>", "<tbody>", *lines, "</tbody></table>", "</div>"])


def menu(name: str, label: str, choices: Mapping[str, str]) -> str:
    """A menu under its label, of values and the texts that stand for them."""
    options = "".join(f'<option value="{escape(value)}">{escape(text)}</option>' for value, text in choices.items())
    return f'<label>{label} <select name="{name}">{options}</select></label>'


def field(name: str, label: str) -> str:
    """A field to type words into, under its label."""
    return f'<label>{label} <input type="search" name="{name}" size="12" autocomplete="off"></label>'


def facts(rows: Iterable[tuple[str, object]]) -> str:
    """Names and what they say, in two columns."""
    lines = [f"<dt>{escape(name)}</dt><dd>{cell(value)}</dd>" for name, value in rows if value]
    return "\n".join(['<dl class="facts">', *lines, "</dl>"]) if lines else ""


def picture(source: str, text: str, caption: str = "", kind: str = "", wide: bool = False) -> str:
    """An image with the text that says what it shows; a wide one scrolls by itself where the page is narrow."""
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    image = f'<img src="{escape(source)}" alt="{escape(text)}" loading="lazy">'
    if wide:
        image = f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(text)}">{image}</div>'
    return f"<figure{_kind(kind)}>{image}{below}</figure>"


def links(targets: Iterable[Link]) -> str:
    """Links in one line."""
    return f"<p>{' · '.join(map(cell, targets))}</p>"


def _kind(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
