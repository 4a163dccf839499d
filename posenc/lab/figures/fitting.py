"""Text tables that fit a width.

A table that is too wide is broken between sizes: every part names the schemes again, and no number is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

GAP = 2
"""Spaces between two columns of a text."""


@dataclass(frozen=True)
class Columns:
    """Columns of a table: its sizes, and how they fit into columns of text."""

    sizes: tuple[int, ...] | None = None
    """Only these; all unless given."""
    brackets: bool = True
    """True if each median has its spread beside it."""
    width: int | None = None
    """The most characters of a line; as many as it takes unless given."""

    def of(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the shown ones of these sizes."""
        return tuple(n for n in sizes if self.sizes is None or n in self.sizes)


def narrow(rows: Sequence[Sequence[str]], head: Sequence[int], sizes: Sequence[int], width: int) -> str:
    """One task's rows under their header, broken into parts; the first column of the head names a row."""
    name, share = head[0], max(16, width // 3)
    labels = [_label_lines(row[name], share) for row in rows]
    widths = {k: max(len(row[k]) for row in rows) for k in (*head, *sizes)}
    widths[name] = max(len(line) for label in labels for line in label)

    def line(columns: Sequence[int], label: str, row: Sequence[str] | None) -> str:
        cells = [label.ljust(widths[name])]
        cells += (
            [row[k].ljust(widths[k]) if k in sizes else row[k].rjust(widths[k]) for k in columns[1:]] if row else []
        )
        return (" " * GAP).join(cells).rstrip()

    tables, left = [], list(sizes)
    while left or not tables:
        columns = list(head[:1] if tables else head)
        room = width - sum(widths[k] + GAP for k in columns)
        while left and (widths[left[0]] <= room or (tables and len(columns) == 1)):
            room -= widths[left[0]] + GAP
            columns.append(left.pop(0))
        lines = []
        for number, (row, label) in enumerate(zip(rows, labels, strict=True)):
            lines += [line(columns, label[0], row), *(line(columns, more, None) for more in label[1:])]
            if not number:
                lines.append((" " * GAP).join("─" * widths[k] for k in columns))
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def _label_lines(label: str, most: int) -> list[str]:
    """Break a scheme's text into lines of at most `most` characters, after spaces, brackets and commas if it can be."""
    lines = [""]
    for word in re.findall(r"[^ (,]*[ (,]+|[^ (,]+", label):
        if lines[-1] and len((lines[-1] + word).rstrip()) > most:
            lines.append("")
        lines[-1] += word
    return [line[at : at + most].rstrip() for line in lines for at in range(0, max(len(line.rstrip()), 1), most)]
