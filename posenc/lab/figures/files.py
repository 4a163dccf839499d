"""A figure as files: SVG, PDF and PNG, the same bytes for the same results, with source and data.

They do not depend on the time, the machine or the order in which results arrive.
"""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posenc.lab.figures import style
from posenc.lab.results.losses import endings
from posenc.lab.results.results import COLUMNS, Results, Row
from posenc.lab.results.statistics import cells
from posenc.lab.store import disk
from posenc.lab.store.folder import digest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("svg", "pdf", "png")
HEAD = tuple("accuracy" if name == "value" else name for name in COLUMNS)
"""Names of columns in files: a value is the share right for every metric, also if the metric is an error."""
EVERY = (*HEAD, "tuning", "final_loss", "final_fall")
"""The columns of all numbers: also whether a trial only chose a learning rate and is not reported, its mean loss over
the last tenth of training, and the share by which the loss fell over the last half."""


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
        figure.savefig(buffer, format=kind, metadata=_metadata(kind, name, subject))
    return buffer.getvalue()


def source(results: Results) -> str:
    """The source of the numbers, in one line: run, code, libraries, devices, and a hash of the trials."""
    facts = [f"run {results.name}", *(f"{k} {', '.join(v)}" for k, v in results.provenance().items())]
    trials = results.trials()
    return style.plain("; ".join([*facts, f"{len(trials)} trials {digest(trials)}"]))


def data(results: Results) -> str:
    """Every run at every size as CSV; `chosen` marks the learning rates that figures show."""
    rates = {(c.task, c.scheme): c.reported for c in cells(results)}
    return as_csv([_named(row) | {"chosen": row.lr in rates[row.task, row.scheme]} for row in results.rows()])


def as_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """Rows as CSV with a header, of these columns or of those of the first row."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns or list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: harmless(v) if isinstance(v, str) else v for k, v in row.items()} for row in rows)
    return buffer.getvalue()


def as_parquet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Rows as a Parquet file; a column in which texts stand beside numbers is of texts. Raises `ValueError` where
    pyarrow is not installed."""
    if importlib.util.find_spec("pyarrow") is None:
        raise ValueError("Parquet files need pyarrow; pip install pyarrow, or export .csv.")
    import pyarrow
    from pyarrow import parquet

    columns = {name: _of_one_kind([row[name] for row in rows]) for name in (rows[0] if rows else ())}
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), buffer)
    return buffer.getvalue()


def _of_one_kind(values: Sequence[Any]) -> list[Any]:
    """Numbers, or truths, or texts; all others are written out."""
    kinds = {float if type(value) is int else type(value) for value in values if value is not None}
    if len(kinds) <= 1 and kinds <= {float, bool, str}:
        return list(values)
    return [None if value is None else str(value) for value in values]


def curves(results: Results) -> list[dict[str, Any]]:
    """One dict per trial and point of its loss curve, those that chose a learning rate among them. A loss is the mean
    over the steps since the point before."""
    rows = []
    for record, trial in results.recorded_trials():
        scheme, curve = results.label(record, trial), trial.curve or {}
        shared = {"task": record.task.label, "scheme": scheme, "family": record.family, "trial": trial.id}
        shared |= {"seed": trial.knobs.seed, "lr": trial.knobs.lr, "outcome": trial.outcome, "tuning": trial.tuning}
        points = zip(curve.get("step", ()), curve.get("loss", ()), strict=True)
        rows += [shared | {"step": step, "loss": loss} for step, loss in points]
    return sorted(rows, key=lambda row: (*(row[k] for k in ("task", "scheme", "lr", "seed", "trial", "step")),))


def listed(results: Results) -> list[dict[str, Any]]:
    """One dict per trial and size, under the column names of `EVERY`; those that chose a rate are among them."""
    ends = {id: {"final_loss": end.loss, "final_fall": end.fall} for id, end in endings(results).items()}
    none = {"final_loss": None, "final_fall": None}
    pairs = [*((row, False) for row in results.rows()), *((row, True) for row in results.tuning_rows())]
    return [_named(row) | {"tuning": tunes} | ends.get(row.trial, none) for row, tunes in pairs]


def _named(row: Row) -> dict[str, Any]:
    return dict(zip(HEAD, (getattr(row, name) for name in COLUMNS), strict=True))


def harmless(text: Any) -> str:
    """A text cell that spreadsheets do not take for a formula."""
    shown = style.plain(text)
    return f"'{shown}" if shown[:1] in ("=", "+", "-", "@") else shown


def _metadata(kind: str, name: str, subject: str) -> dict[str, Any]:
    if kind == "svg":
        return {"Title": name, "Description": subject, "Creator": "posenc", "Date": None}
    if kind == "pdf":
        return {"Title": name, "Subject": subject, "Creator": "posenc", "Producer": "matplotlib", "CreationDate": None}
    return {"Title": name, "Description": subject, "Software": "posenc"}
