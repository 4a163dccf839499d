"""How commands print results on stdout: tables on a terminal, aligned lines elsewhere, JSON on request."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from posenc.lab.figures.style import aligned, need_matplotlib
from posenc.lab.figures.style import plain as shown

_TIE = "\N{NO-BREAK SPACE}"
_SHORT = 40
LOOKED_AT = 4096
"""Bytes of a file that say what it is."""


def terminal(stream: TextIO) -> bool:
    """Tell whether a person watches this stream: only then colours and moving bars are shown."""
    return stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")


def columns() -> int | None:
    """Return how many columns a result may take: COLUMNS if it is set, else those of the terminal. In a file or a pipe
    lines stay whole, for the program that reads them, and the answer is None."""
    setting = os.environ.get("COLUMNS", "")
    if setting.isdecimal() and int(setting) > 0:
        return int(setting)
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def report(problems: tuple[str, ...]) -> None:
    """Print what is wrong with the files that were read, on stderr."""
    for problem in problems:
        print(clean(problem), file=sys.stderr)


def wrap(text: str) -> str:
    """Sentences and lists in as many columns as there are; what goes on in a further line is indented."""
    width = columns()
    lines = (_wrapped(line, width) for line in text.split("\n")) if width else [text]
    return "\n".join(lines).replace(_TIE, " ")


def tie(text: str) -> str:
    """A short text that `wrap` leaves in one line."""
    return text.replace(" ", _TIE) if len(text) <= _SHORT else text


def _wrapped(line: str, width: int) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def clean(text: Any) -> str:
    """The text without control characters, so that no name can move the cursor or recolour a terminal."""
    return "\n".join(map(shown, str(text).split("\n")))


def say(text: Any) -> None:
    """Print a result on stdout."""
    print(clean(text).rstrip("\n"))


def say_json(thing: Any) -> None:
    """Print a result as JSON."""
    sys.stdout.write(as_json(thing))


def as_json(thing: Any) -> str:
    """A result as JSON: keys in the order of the dict, NaN and infinities as null."""
    from posenc.lab.store.records import plain

    return json.dumps(plain(thing), indent=1, ensure_ascii=False, allow_nan=False, default=str) + "\n"


def brief(value: Any) -> str:
    """A value as the text of a table cell."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) or "-" if isinstance(value, list) else str(value)


def say_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows under their columns: framed on a terminal, aligned by spaces elsewhere."""
    cells = [[clean(c) for c in row] for row in rows]
    if terminal(sys.stdout):
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(*columns, box=box.SIMPLE)
        for row in cells:
            table.add_row(*map(Text, row))
        Console().print(table)
        return
    print("\n".join(aligned([columns, *cells], str.ljust)))


def figure_path(text: str) -> Path:
    """The path of a figure to write. Raises `ValueError` if it cannot be written, or if matplotlib is missing."""
    need_matplotlib()
    return output_path(text, "--png", (".png", ".svg", ".pdf"))


def output_path(text: str, option: str, endings: tuple[str, ...]) -> Path:
    """The path of a file to write. Raises `ValueError` unless it has one of the endings, its folder exists, and what it
    holds is by posenc."""
    path = Path(text)
    if path.suffix not in endings or path.is_dir() or not path.parent.is_dir():
        *most, last = endings
        kinds = f"{', '.join(most)} or {last}" if most else last
        raise ValueError(f"{option}: cannot write {text!r}; use a file name with {kinds}, in an existing folder.")
    if path.exists() and not is_ours(path):
        raise ValueError(
            f"{option} {text!r} exists and was not written by posenc; give another name, or move that file away."
        )
    return path


def is_ours(path: Path) -> bool:
    """Tell whether a file is a figure, a table or a page that posenc wrote, or is empty."""
    if not path.is_file():
        return False
    content = path.read_bytes()
    if not content or path.suffix == ".csv":
        return content.startswith(b"task,scheme") or not content
    if path.suffix == ".json":
        return content.startswith(b"[") and b'"scheme"' in content[:LOOKED_AT] or content.strip() == b"[]"
    if path.suffix == ".parquet":
        return content.startswith(b"PAR1") and b"scheme" in content
    if path.suffix == ".html":
        return b'<meta name="generator" content="posenc' in content[:LOOKED_AT]
    return b"posenc" in content  # as figures say who made them


def bundle_path(text: str, name: str) -> Path:
    """The path of a bundle of this run to write. Raises `ValueError` unless its folder exists, and it holds nothing but
    an older bundle of the same run."""
    from posenc.lab.store.records import read_bundle

    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"--bundle: cannot write {text!r}; use a file name, such as NAME.json, in an existing folder.")
    if path.exists():
        try:
            held = read_bundle(path).name
        except ValueError:
            held = None
        if held != name:
            what = "no bundle of records" if held is None else f"a bundle of {held!r}"
            raise ValueError(f"--bundle {text!r} exists and is {what}; give another name, or move that file away.")
    return path
