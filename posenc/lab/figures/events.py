"""Results as event files for TensorBoard: the loss along training, and every evaluation at its size. No jax.

Each trial is a run of TensorBoard, in a folder by task, scheme, rate and seed. `loss` is against steps of training, and
`by_size/METRIC` against the size at which examples were evaluated; times are steps, since records hold no others.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path

from posenc.lab.results.losses import points
from posenc.lab.results.results import Results, Row
from posenc.lab.store import disk
from posenc.lab.store.schema import GroupRecord, TrialRecord


def write(results: Results, folder: Path) -> list[Path]:
    """Write the event files of all trials, those that chose a rate among them, into a new folder; returns the folder of
    each. Raises `ValueError` where the writer is not installed, or the folder holds anything."""
    if importlib.util.find_spec("tensorboardX") is None:
        raise ValueError("Event files need tensorboardX; pip install 'posenc[tensorboard]'.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(
            f"{str(folder)!r} exists and is not empty, and TensorBoard would mix the two; name a new folder."
        )
    SummaryWriter = importlib.import_module("tensorboardX").SummaryWriter
    rows: dict[str, list[Row]] = {}
    for row in (*results.rows(), *results.tuning_rows()):
        rows.setdefault(row.trial, []).append(row)
    places = []
    for record, trial in results.recorded_trials():
        place = folder / _name(results, record, trial)
        with disk.guarded(folder), SummaryWriter(str(place)) as writer:
            for step, loss in points(trial.curve or {}):
                writer.add_scalar("loss", loss, int(step), walltime=float(step))
            for row in rows.get(trial.id, ()):
                writer.add_scalar(f"by_size/{row.metric}", row.value, row.size, walltime=float(trial.steps))
        places.append(place)
    return places


def _name(results: Results, record: GroupRecord, trial: TrialRecord) -> str:
    """The folder of a trial, without what could leave the folder it is in; its id ends it, so that none is twice."""
    texts = (record.task.label, results.label(record, trial), f"lr {trial.knobs.lr:g}", f"seed {trial.knobs.seed}")
    parts = [re.sub(r"[^A-Za-z0-9 _+=,().@-]+", "_", text).strip(" .")[:100] or "_" for text in texts]
    return f"{parts[0]}/{parts[1]}/{parts[2]}, {parts[3]}, {trial.id[:8]}"
