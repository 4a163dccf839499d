"""Results for other programs: rows as CSV, and event files for TensorBoard. No jax.

Each trial is a run of TensorBoard, in a folder by task, scheme, rate and seed. `loss` is against steps of training, and
`by_size/METRIC` against the size at which examples were evaluated; times are steps, since records hold no others.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posenc.lab.figures import style
from posenc.lab.results.losses import points
from posenc.lab.results.results import COLUMNS, Results, Row, grouped
from posenc.lab.store import disk
from posenc.lab.store.schema import GroupRecord, TrialRecord

if TYPE_CHECKING:
    import pandas

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"}
_LATEX |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", **{c: f"\\{c}" for c in "&%$#_{}"}}
_MARKDOWN = {c: f"\\{c}" for c in "\\`*_<|~$&"}
HEAD = tuple("accuracy" if name == "value" else name for name in COLUMNS)
"""Names of columns in files of figures: a value is the share right for every metric, also if the metric is an error."""


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


def as_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """Rows as CSV with a header, of these columns or of those of the first row."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns or list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: harmless(v) if isinstance(v, str) else v for k, v in row.items()} for row in rows)
    return buffer.getvalue()


def csv_of(frame: pandas.DataFrame) -> str:
    """A table as CSV with a header."""
    texts = [name for name, kind in frame.dtypes.items() if kind in ("category", "object", "str")]
    safe = frame.assign(**{str(name): frame[name].map(harmless, na_action="ignore") for name in texts})
    return safe.to_csv(index=False, lineterminator="\n")


def write_events(results: Results, folder: Path) -> list[Path]:
    """Write the event files of all trials, those that chose a rate among them, into a new folder; returns the folder of
    each. Raises `ValueError` where the writer is not installed, or the folder holds anything."""
    if importlib.util.find_spec("tensorboardX") is None:
        raise ValueError("Event files need tensorboardX; pip install 'posenc[tensorboard]'.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(
            f"{str(folder)!r} exists and is not empty, and TensorBoard would mix the two; name a new folder."
        )
    SummaryWriter = importlib.import_module("tensorboardX").SummaryWriter
    rows = grouped((row.trial, row) for row in (*results.rows(), *results.tuning_rows()))
    places = []
    for record, trial in results.recorded_trials():
        place = folder / _folder(results, record, trial)
        with disk.guarded(folder), SummaryWriter(str(place)) as writer:
            for step, loss in points(trial.curve or {}):
                writer.add_scalar("loss", loss, int(step), walltime=float(step))
            for row in rows.get(trial.id, ()):
                writer.add_scalar(f"by_size/{row.metric}", row.value, row.size, walltime=float(trial.steps))
        places.append(place)
    return places


def _folder(results: Results, record: GroupRecord, trial: TrialRecord) -> str:
    """Return the folder of a trial, without parts that could leave its parent. Its id ends it, so that each name is
    unique."""
    texts = (record.task.label, results.label(record, trial), f"lr {trial.knobs.lr:g}", f"seed {trial.knobs.seed}")
    parts = [re.sub(r"[^A-Za-z0-9 _+=,().@-]+", "_", text).strip(" .")[:100] or "_" for text in texts]
    return f"{parts[0]}/{parts[1]}/{parts[2]}, {parts[3]}, {trial.id[:8]}"


def named(row: Row) -> dict[str, Any]:
    """A row under the names of columns in files."""
    return dict(zip(HEAD, (getattr(row, name) for name in COLUMNS), strict=True))


def harmless(text: Any) -> str:
    """A text cell that spreadsheets do not take for a formula."""
    shown = style.plain(text)
    return f"'{shown}" if shown[:1] in ("=", "+", "-", "@") else shown


def latex(text: str) -> str:
    """Escape a text for LaTeX. A bracket or star at its start would belong to the end of the row before it.

    >>> latex("[rope, nope]")
    '{[}rope, nope]'
    """
    escaped = "".join(_LATEX.get(c, c) for c in text)
    return f"{{{escaped[0]}}}{escaped[1:]}" if escaped[:1] in ("[", "*") else escaped


def markdown(text: str) -> str:
    """Escape a text for a cell of a Markdown table."""
    return "".join(_MARKDOWN.get(c, c) for c in text)
