"""Pieces of a page: templates of Markdown around HTML, in which every text is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from posenc_site.tex import pieces

WIDE = ("toc",)
"""Hidden beside a page of wide tables."""
ALONE = ("toc", "navigation")
"""Hidden beside a page that stands for itself."""


class SitePage(NamedTuple):
    """A page of Markdown by its path in the site, such as "schemes/rope.md"."""

    path: str
    text: str


class Link(NamedTuple):
    """A text that leads to another page, relative to the page that shows it."""

    text: str
    target: str


def page(path: str, title: str, template: str, hide: Sequence[str] = (), **values: Any) -> SitePage:
    """Fill a template; `hide` are the columns beside the page that it does without."""
    quoted = title.replace("\\", "\\\\").replace('"', '\\"')
    head = ["---", f'title: "{quoted}"', *(["hide:"] if hide else []), *(f"  - {column}" for column in hide), "---"]
    body = ENVIRONMENT.get_template(f"{template}.jinja").render(title=title, **values)
    return SitePage(path, "\n".join(head) + "\n\n" + re.sub(r"\n{3,}", "\n\n", body).strip() + "\n")


def inline(value: object) -> Markup:
    """Return a text in which code stands between backticks, a link, or a row of them, as HTML."""
    if isinstance(value, Link):
        return Markup('<a href="{}">{}</a>').format(value.target, value.text)
    if isinstance(value, (list, tuple)):
        return Markup(", ").join(map(inline, value))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(value))))


def block(text: str, language: str = "text", wrap: bool = False) -> Markup:
    """Fence lines that are shown as they are; those that are too long scroll, or go on below."""
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
    kind = f" {{ .{language} .wrap }}" if wrap else language
    return Markup(f"{fence}{kind}\n{text.rstrip()}\n{fence}")


def inset(text: str) -> Markup:
    """Move a block to the right, into a tab or a note."""
    return Markup("\n".join(f"    {line}".rstrip() for line in text.splitlines()))


def equation(text: str) -> Markup:
    """Set an equation piece by piece, so that it wraps; a reader without scripts sees it as it was written."""
    piece = Markup('<span class="math" role="math" aria-label="{}" data-tex="{}">{}</span>')
    lines = [Markup(" ").join(piece.format(plain, tex, plain) for plain, tex in of) for of in pieces(text)]
    return Markup('<div class="equation" tabindex="0" role="region" aria-label="Equation">{}</div>').format(
        Markup("<br>").join(lines)
    )


def published(entry: str) -> str:
    """Return the title of a BibTeX entry, by which a search finds the page."""
    found = re.search(r"\btitle\s*=\s*\{((?:[^{}]|\{[^{}]*\})*)\}", entry)
    return re.sub(r"[{}\\]", "", " ".join(found[1].split())) if found else "Source"


def _environment() -> Environment:
    folder = FileSystemLoader(Path(__file__).parent.parent / "templates")
    made = Environment(loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters |= {"inline": inline, "block": block, "inset": inset, "equation": equation, "published": published}
    return made


ENVIRONMENT = _environment()
