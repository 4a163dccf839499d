"""Tables that fit a width: which columns there are, where a table is broken, and how wide LaTeX sets a text.

A table that is too wide is broken between sizes: every part names the schemes again, and no number is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

GAP = 2
"""Spaces between two columns of a text."""
COLUMN = 219.0
"""Points of the narrowest column of the venues of `posenc plot`: 7.7 cm, of ACL."""
SEPARATION = 3.0
"""Points on each side of a column of a LaTeX table."""
DIGIT = 4.25
"""Points of a digit in Computer Modern at 8 points, the \\footnotesize of a paper in 10 points."""
_NARROW, _WIDE = "ijlt.,:;'|![]()-/ ", "mwMW@%"


@dataclass(frozen=True)
class Columns:
    """Which numbers of the results a table has, and in how many columns of text."""

    sizes: tuple[int, ...] | None = None
    """Only these; all unless given."""
    brackets: bool | None = None
    """Whether each median has its spread beside it; in LaTeX, unless given, where they fit."""
    width: int | None = None
    """The most characters of a line; as many as it takes unless given."""
    short: bool = False
    """Without the learning rate and the largest size that holds."""

    def of(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Those of these sizes that are shown."""
        return tuple(n for n in sizes if self.sizes is None or n in self.sizes)


def parts(
    head: Sequence[int], sizes: Sequence[int], wide: Callable[[Sequence[int]], float], room: float
) -> list[list[int]]:
    """The columns of each part of a table: `head` and as many sizes as there is room for, then the first of the head,
    which names the row, with further ones. A part has a size at least, if there are any."""
    made, left = [], list(sizes)
    while left or not made:
        columns = list(head[:1] if made else head)
        while left and (wide([*columns, left[0]]) <= room or (made and len(columns) == 1)):
            columns.append(left.pop(0))
        made.append(columns)
    return made


def narrow(rows: Sequence[Sequence[str]], head: Sequence[int], sizes: Sequence[int], width: int) -> str:
    """One task's rows under their header, broken into parts; the first column of the head names a row."""
    name, share = head[0], max(16, width // 3)
    labels = [_label_lines(row[name], share) for row in rows]
    widths = {k: max(len(row[k]) for row in rows) for k in (*head, *sizes)}
    widths[name] = max(len(line) for label in labels for line in label)

    def wide(columns: Sequence[int]) -> int:
        return sum(widths[k] for k in columns) + GAP * (len(columns) - 1)

    def line(columns: Sequence[int], label: str, row: Sequence[str] | None) -> str:
        cells = [label.ljust(widths[name])]
        cells += (
            [row[k].ljust(widths[k]) if k in sizes else row[k].rjust(widths[k]) for k in columns[1:]] if row else []
        )
        return (" " * GAP).join(cells).rstrip()

    tables = []
    for columns in parts(head, sizes, wide, width):
        lines = []
        for number, (row, label) in enumerate(zip(rows, labels, strict=True)):
            lines += [line(columns, label[0], row), *(line(columns, more, None) for more in label[1:])]
            if not number:
                lines.append((" " * GAP).join("─" * widths[k] for k in columns))
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def _label_lines(label: str, most: int) -> list[str]:
    """A scheme's text in lines of at most so many characters, broken after spaces, brackets and commas if it can be."""
    lines = [""]
    for word in re.findall(r"[^ (,]*[ (,]+|[^ (,]+", label):
        if lines[-1] and len((lines[-1] + word).rstrip()) > most:
            lines.append("")
        lines[-1] += word
    return [line[at : at + most].rstrip() for line in lines for at in range(0, max(len(line.rstrip()), 1), most)]


def points(text: str, bold: bool = False) -> float:
    """About how many points LaTeX sets a text in, at \\footnotesize."""
    shares = [
        0.65 if c in _NARROW else 1.7 if c in _WIDE else 1.45 if c.isupper() or c in "=+<>_" else 1.0 for c in text
    ]
    return DIGIT * sum(shares) * (1.16 if bold else 1.0)
