"""The page of a report: chapters of sections in one HTML file, which loads nothing, whatever a record holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posenc.lab.figures.pages import filled

MARKER = '<meta name="generator" content="posenc report">'
"""Identifies a report, which may be written over."""
HEAD = 1024
"""Bytes in which the marker stands."""


@dataclass(frozen=True)
class Piece:
    """A part of a section: the template knows how each kind is set."""

    kind: str
    data: Any


@dataclass(frozen=True)
class Section:
    """A part of a report under its title; one without a body is left out."""

    title: str
    body: Sequence[Piece]
    level: int = 2


@dataclass(frozen=True)
class Chapter:
    """The report of one run."""

    name: str
    lead: str
    """A sentence under the name."""
    sections: Sequence[Section]


def page(chapters: Sequence[Chapter], last: Sequence[Section] = (), refresh: int | None = None) -> str:
    """Write the file: chapters, then sections for all of them. With `refresh` a browser reads it again after that many
    seconds."""
    return filled("report.html", chapters=chapters, last=last, refresh=refresh)


def is_report(path: Path) -> bool:
    """Return whether a file is a report of ours."""
    with open(path, "rb") as file:
        return MARKER.encode() in file.read(HEAD)


def paragraphs(texts: Iterable[str], kind: str = "paragraphs") -> list[Piece]:
    """Set texts as paragraphs, or as "notes"."""
    kept = [text for text in texts if text]
    return [Piece(kind, kept)] if kept else []


def facts(pairs: Iterable[tuple[str, str]]) -> list[Piece]:
    """Set names beside their values; a name without a value is left out."""
    kept = [(name, text) for name, text in pairs if text]
    return [Piece("facts", kept)] if kept else []


def rows(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> list[Piece]:
    """Set a table of texts."""
    return [Piece("rows", (columns, lines))]


def block(text: str) -> list[Piece]:
    """Set lines as they are."""
    return [Piece("block", text)]


def folded(title: str, body: Sequence[Piece]) -> list[Piece]:
    """Fold a body, which is then read on request and not printed."""
    return [Piece("folded", (title, body))]
