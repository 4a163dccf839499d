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
from posenc.lab.store.schema import GroupRecord, KnobRecord, TrialRecord

if TYPE_CHECKING:
    from posenc.lab.results.results import Results, Row

PARTS = ("revisions", "sources")
"""Settings that hold several values by name, which are columns each."""
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


def frame(results: Results) -> Any:
    """The same as a table of pandas, or of polars. Raises `ValueError` where neither is installed."""
    rows = flat(results)
    if importlib.util.find_spec("pandas") is not None:
        return importlib.import_module("pandas").DataFrame(rows)
    if importlib.util.find_spec("polars") is not None:
        return importlib.import_module("polars").DataFrame(rows, infer_schema_length=None)
    raise ValueError("A frame needs pandas or polars, and neither is installed; pip install pandas, or take .rows().")


def _rows(rows: Sequence[Row], tuning: bool) -> list[dict[str, Any]]:
    return [{**{f.name: getattr(row, f.name) for f in fields(row)}, "tuning": tuning} for row in rows]


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
