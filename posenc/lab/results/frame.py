"""Results as data: a row for each trial and size, in which every setting is a column. No jax.

`load("runs/mine").frame()` is a table of pandas, or of polars where that alone is installed; rows as plain values are
in `rows`, which need neither.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from posenc.lab.results.losses import endings
from posenc.lab.results.results import COLUMNS
from posenc.lab.store.schema import GroupRecord, KnobRecord, TrialRecord

if TYPE_CHECKING:
    from posenc.lab.results.results import Results, Row

PARTS = ("revisions", "sources")
"""Settings that hold several values by name, which are columns each."""
LIBRARIES: dict[str, dict[str, Any]] = {"pandas": {}, "polars": {"infer_schema_length": None}}
"""Those that have a `DataFrame`, the first to be taken first, and how it is made of rows."""
FREE = ("task", "scheme")
"""Settings that a row has under the name of its table, and here as they were planned."""


def flat(results: Results) -> list[dict[str, Any]]:
    """One dict per trial and size, all with the same keys: the columns of `Row`, the knobs, every setting of the runs
    (`task` and `scheme` of a run as `run.task` and `run.scheme`), `tuning` and the end of the loss."""
    trials = {trial.id: _settings(record, trial) for record, trial in results.recorded_trials()}
    ends = endings(results)
    columns = dict.fromkeys(itertools.chain.from_iterable(trials.values()))
    rows = [*_rows(results.rows(), tuning=False), *_rows(results.tuning_rows(), tuning=True)]
    for row in rows:
        settings, end = trials[row["trial"]], ends.get(row["trial"])
        row |= {name: settings.get(name) for name in columns}
        row |= {"final_loss": end and end.loss, "final_fall": end and end.fall}
    return rows


def frame(results: Results, library: str | None = None) -> Any:
    """The same as a table of a library, or of the first that is installed. Raises `ValueError` where none is."""
    if library not in (None, *LIBRARIES):
        raise ValueError(f"frame() was given {library!r}; take {' or '.join(map(repr, LIBRARIES))}.")
    for name in (library,) if library else LIBRARIES:
        if importlib.util.find_spec(name) is not None:
            return importlib.import_module(name).DataFrame(flat(results), **LIBRARIES[name])
    needed = f"{library}, which is not" if library else "pandas or polars, and neither is"
    raise ValueError(f"A frame needs {needed} installed; pip install {library or 'pandas'}, or take .rows().")


def _rows(rows: Sequence[Row], tuning: bool) -> list[dict[str, Any]]:
    return [{**{name: getattr(row, name) for name in COLUMNS}, "tuning": tuning} for row in rows]


def _settings(record: GroupRecord, trial: TrialRecord) -> dict[str, Any]:
    """The knobs of a trial and the settings of its run, each under its name."""
    knobs = {f.name: getattr(trial.knobs, f.name) for f in fields(KnobRecord) if f.name not in ("seed", "lr", "other")}
    run: dict[str, Any] = {}
    for name, value in record.run.items():
        if name in PARTS and isinstance(value, Mapping):
            run |= {f"{name}.{part}": number for part, number in value.items()}
        else:
            run[f"run.{name}" if name in FREE else name] = value
    return knobs | run
