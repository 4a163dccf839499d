"""The page of a report: sections, style and script in one HTML file that loads nothing.

Its policy forbids the browser to load anything, whatever a record holds; every text is escaped where it enters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from posenc.lab.figures.html_table import wide
from posenc.lab.figures.style import plain, safe

MARKER = '<meta name="generator" content="posenc report">'
"""By which a report is known to be one, and may be written over."""
HEAD = 1024
"""Bytes in which the marker stands."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Section:
    """A part of a report under its title."""

    title: str
    body: str
    """HTML."""
    level: int = 2


@dataclass(frozen=True)
class Chapter:
    """What there is to say of one run."""

    name: str
    lead: str
    """A sentence under the name."""
    sections: Sequence[Section]

    def as_html(self) -> str:
        """The part as an `article`."""
        head = f'<h1>{safe(self.name)}</h1>\n<p class="lead">{safe(self.lead)}</p>'
        bodies = (f"<h{s.level}>{safe(s.title)}</h{s.level}>\n{s.body}" for s in self.sections if s.body)
        return "\n".join(["<article>", head, *bodies, "</article>"])


def page(parts: Sequence[Chapter], last: Sequence[Section] = (), refresh: int | None = None) -> str:
    """The file: parts, and sections for all of them. With `refresh` a browser reads it again after so many seconds."""
    style, script = ((FOLDER / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    again = [f'<meta http-equiv="refresh" content="{refresh}">'] if refresh else []
    head = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        MARKER,
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        *again,
        f"<title>{safe(', '.join(part.name for part in parts))}: a report by posenc</title>",
        f"<style>\n{style}</style></head><body><main>",
    ]
    ends = [f"<h2>{safe(section.title)}</h2>\n{section.body}" for section in last if section.body]
    tail = ["</main><output></output>", f"<script>\n{script}</script></body></html>"]
    return "\n".join([*head, *(part.as_html() for part in parts), *ends, *tail]) + "\n"


def is_report(path: Path) -> bool:
    """Whether a file is a report of ours."""
    with open(path, "rb") as file:
        return MARKER.encode() in file.read(HEAD)


def paragraphs(texts: Iterable[str], look: str = "") -> str:
    """Sentences, each a paragraph."""
    body = "\n".join(f"<p>{safe(text)}</p>" for text in texts if text)
    return f'<div class="{look}">{body}</div>' if look and body else body


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and what they are; those without a text are left out."""
    rows = [f"<dt>{safe(name)}</dt><dd>{safe(text)}</dd>" for name, text in pairs if text]
    return f"<dl>{''.join(rows)}</dl>" if rows else ""


def rows(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table of texts."""
    head = "".join(f'<th scope="col">{safe(name)}</th>' for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{safe(cell)}</td>' for cell in line)}</tr>" for line in lines)
    return wide(f'<table class="list"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>')


def block(text: str) -> str:
    """Lines that are shown as they are."""
    lines = "\n".join(map(plain, text.split("\n")))
    return f'<pre tabindex="0">{escape(lines)}</pre>'


def folded(title: str, body: str) -> str:
    """What is read only by whoever opens it, and not printed."""
    return f"<details><summary>{safe(title)}</summary>\n{body}</details>"
