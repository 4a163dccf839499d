"""A figure as files: SVG, PDF and PNG, the same bytes for the same results, with source and data.

They do not depend on the time, the machine or the order in which results arrive.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posenc.lab.figures import style
from posenc.lab.figures.exports import as_csv, named
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import cells
from posenc.lab.store import disk
from posenc.lab.store.folder import digest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("svg", "pdf", "png")


def save(
    figure: Figure, folder: Path, name: str, results: Results, caption: str, rows: Sequence[Mapping[str, Any]] = ()
) -> list[Path]:
    """Write `name` as .svg, .pdf, .png, .csv and .caption.txt; returns their paths. The CSV has these rows, or without
    any every run at every size."""
    disk.check_name(name)
    folder = Path(folder)
    with disk.guarded(folder):
        folder.mkdir(parents=True, exist_ok=True)
    subject = source(results)
    written = [disk.write(folder / f"{name}.{kind}", render(figure, kind, name, subject)) for kind in FORMATS]
    written.append(disk.write(folder / f"{name}.csv", (as_csv(rows) if rows else data(results)).encode()))
    return [*written, disk.write(folder / f"{name}.caption.txt", (caption.strip() + "\n").encode())]


def render(figure: Figure, kind: str, name: str, subject: str) -> bytes:
    """A figure in one of the formats, with its name and subject as metadata."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context(style.RC):
        _lay_out(figure)
        figure.savefig(buffer, format=kind, metadata=_metadata(kind, name, subject))
    return buffer.getvalue()


def _lay_out(figure: Figure) -> None:
    """Fix the positions of parts and axes once for all formats, in billionths of the figure.

    Matplotlib's solver orders variables by their addresses, so that the last digits are chance. Names in an SVG are
    hashes of all of them.
    """
    if figure.get_layout_engine() is None:
        return
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for part in figure.subfigs:
        part.bbox_relative.set_points(part.bbox_relative.get_points().round(9))
    for axes in figure.axes:
        axes.set_position([round(at, 9) for at in axes.get_position(original=True).bounds])


def source(results: Results) -> str:
    """The source of the numbers, in one line: run, code, libraries, devices, and a hash of the trials."""
    facts = [f"run {results.name}", *(f"{k} {', '.join(v)}" for k, v in results.provenance().items())]
    trials = results.trials()
    return style.plain("; ".join([*facts, f"{len(trials)} trials {digest(trials)}"]))


def data(results: Results) -> str:
    """Every run at every size as CSV; `chosen` marks the learning rates that figures show."""
    rates = {(c.task, c.scheme): c.reported for c in cells(results)}
    return as_csv([named(row) | {"chosen": row.lr in rates[row.task, row.scheme]} for row in results.rows()])


def _metadata(kind: str, name: str, subject: str) -> dict[str, Any]:
    if kind == "svg":
        return {"Title": name, "Description": subject, "Creator": "posenc", "Date": None}
    if kind == "pdf":
        return {"Title": name, "Subject": subject, "Creator": "posenc", "Producer": "matplotlib", "CreationDate": None}
    return {"Title": name, "Description": subject, "Software": "posenc"}
