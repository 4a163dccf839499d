"""Every measurement as one table of pandas: `posenc.load("runs/mine")`. No jax.

    table = posenc.load("length")
    shown = table[table.reported & table.shown & (table.part == "test") & (table.outcome != "baseline")]
    per_seed = shown.groupby(["task", "label", "size", "seed"]).value.median()
    per_seed.groupby(["task", "label", "size"]).median()

A line is one trial at one size by one metric. The metric is a column, and so is whether tables report the trial: every
view of your own is a query.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from posenc.lab import metrics
from posenc.lab.metrics import LOSSES, PARTS
from posenc.lab.results.floors import floors_by
from posenc.lab.results.losses import endings
from posenc.lab.results.rates import rates_by_cell
from posenc.lab.results.results import Results, shortest_model, sizes_of
from posenc.lab.results.results import load as read_results
from posenc.lab.spec import committed
from posenc.lab.spec.experiment_file import from_file
from posenc.lab.store.schema import GroupRecord, KnobRecord, TaskRecord, TrialRecord
from posenc.language.echo import echoed

if TYPE_CHECKING:
    import pandas

METRICS = ("accuracy", "exact", "last", "beyond", metrics.GAIN, *LOSSES)
"""Metrics of lines. Shares of right answer tokens, whole answers, last tokens and tokens beyond training come first.
The others are the share gained of what an exact loss leaves, and mean losses in nats and in bits."""
COUNTED = {metric: metrics.ratio(metric) for metric in METRICS}
"""Metric to the counts that it divides."""
PARTS_OF_DATA = ("test", "validation")
BASELINE = "baseline"
"""The family, model and outcome of lines that no trial made."""
FREE = ("task", "scheme")
"""Settings whose names the table has already; they are columns as `run.task` and `run.scheme`."""
HEAD = ("task", "scheme", "model", "label", "family", "trial", "seed", "lr", "steps", "outcome", "tuning", "reported")
HEAD += ("final_loss", "final_fall")
"""The columns that all lines of a trial share, before its settings."""
LINE = np.dtype(
    [("trial", "i4"), ("part", "i1"), ("size", "i4"), ("bin", "i4"), ("metric", "i1"), ("value", "f8"), ("n", "i4")]
)
Metric = str | Mapping[str, str] | None
"""A metric of all tasks, or of some by their labels."""
WHOLE = -1
"""The bin of a line that is about whole examples."""


def load(path: str | os.PathLike, bins: bool = False) -> pandas.DataFrame:
    """Return every measurement of a run folder, its name, a bundle, or an experiment whose record is committed.

    A line is one trial × size × metric, with the columns

        task, scheme, model, label   label is the scheme with the settings in which its runs differ
        family, trial, seed, lr, steps
        outcome                      done or diverged; baseline in lines that no trial made
        part                         test or validation
        size, trained                trained: the size is one of those trained on
        bin                          first position of a bin; missing in lines about whole examples
        metric, value, n             n is the number of examples
        shown                        tables show this metric of this task; lines of bins are never shown
        tuning, reported             reported: the trial ran at a learning rate that ties in validation
        final_loss, final_fall       the loss at the end, and its fall over the last half of the steps

    and one for every setting in which the runs differ. A diverged trial scores as the uniform baseline. `bins` adds a
    line for each bin of positions. `attrs` has the name, the settings that all runs share, the problems, and how many
    records are unreadable; each problem is a warning.

    Raises `ValueError` where pandas is missing, where nothing is found, and for formats older than 0.2.0.
    """
    record, metric = _recorded(path)
    results = read_results(record)
    for problem in results.problems:
        warnings.warn(problem, stacklevel=2)
    return table(results, bins, metric)


def frame_of(rows: Sequence[Mapping[str, Any]]) -> pandas.DataFrame:
    """Return rows as a table."""
    return _pandas().DataFrame(rows)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ValueError("A table needs pandas, which is not installed; pip install 'posenc[lab]'.") from None
    return pandas


def _recorded(path: str | os.PathLike) -> tuple[str | os.PathLike, Metric]:
    """The record of an experiment and the metric of its table, where a name or a file of one is given, and no run."""
    if not isinstance(path, str | os.PathLike):
        return path, None
    text = os.fspath(path)
    try:
        experiment = committed.experiment_of(text)
    except OSError:  # no file has so long a name
        raise ValueError(f"There are no results at {echoed(text)}; give a run, a bundle or an experiment.") from None
    if experiment is None:
        return path, None
    return committed.existing_record(experiment, text), from_file(experiment, yes=True).metric


def table(results: Results, bins: bool = False, metric: Metric = None) -> pandas.DataFrame:
    """Return the measurements of results that were read already, as `load` has them; `metric` is that of tables."""
    pandas = _pandas()
    pairs = sorted(results.recorded_trials(), key=lambda pair: _place(results, *pair))
    guesses, tasks = _guesses(results), results.tasks()
    baselines = [*_baselines(guesses)]
    heads = [*_heads(results, pairs), *baselines]
    heads, shared = _varying(pandas.DataFrame(heads, columns=None if heads else HEAD, dtype=object))
    lines = np.fromiter(_lines(pairs, baselines, guesses, bins), LINE)
    of_line = lines["trial"]
    frame = pandas.DataFrame({name: _compact(heads[name])[of_line] for name in heads.columns}, copy=False)
    ranges = [record.task.trained for record, _ in pairs] + [tasks[head["task"]].trained for head in baselines]
    ends = np.array(ranges, int).reshape(-1, 2)[of_line]
    by_task = dict.fromkeys(tasks, metric) if isinstance(metric, str) else dict(metric or {})
    shown = {label: metrics.NAMES.get(name, name) for label, name in (results.shown_metrics() | by_task).items()}
    is_shown = np.array([METRICS.index(shown[label]) for label in heads["task"]], int)[of_line] == lines["metric"]
    measured = {
        "part": pandas.Categorical.from_codes(lines["part"], PARTS_OF_DATA),
        "size": lines["size"].copy(),
        "trained": (ends[:, 0] <= lines["size"]) & (lines["size"] <= ends[:, 1]),
        "bin": pandas.arrays.IntegerArray(lines["bin"].copy(), lines["bin"] == WHOLE),
        "metric": pandas.Categorical.from_codes(lines["metric"], METRICS),
        "value": lines["value"].copy(),
        "n": lines["n"].copy(),
        "shown": is_shown & (lines["bin"] == WHOLE),
    }
    for k, (name, column) in enumerate(measured.items()):
        frame.insert(10 + k, name, column)
    frame.attrs |= {
        "settings": shared,
        "name": results.name,
        "problems": [*results.problems],
        "unreadable": results.unreadable,
    }
    return frame


def _varying(heads: pandas.DataFrame) -> tuple[pandas.DataFrame, dict[str, Any]]:
    """The columns of trials without the settings that all runs share, and these."""
    settings = list(heads.columns[len(HEAD) :])
    same = {name: heads[name].dropna().map(str).nunique() < 2 for name in settings}
    shared = {name: next(iter(heads[name].dropna()), None) for name in settings if same[name]}
    return heads.drop(columns=list(shared)), shared


def _place(results: Results, record: GroupRecord, trial: TrialRecord) -> tuple[Any, ...]:
    """The order of trials."""
    return record.task.label, results.label(record, trial), trial.knobs.lr, trial.knobs.seed, trial.id


def _heads(results: Results, pairs: list[tuple[GroupRecord, TrialRecord]]) -> Iterator[dict[str, Any]]:
    """Yield the columns that all lines of a trial share."""
    rates, ends = rates_by_cell(results), endings(results)
    for record, trial in pairs:
        label, end = results.label(record, trial), ends.get(trial.id)
        reported = not trial.tuning and trial.knobs.lr in rates[record.task.label, label].reported
        yield {
            **{
                "task": record.task.label,
                "scheme": record.label,
                "model": shortest_model(str(record.run.get("model", ""))),
            },
            **{"label": label, "family": record.family, "trial": trial.id, "seed": trial.knobs.seed},
            **{"lr": trial.knobs.lr, "steps": trial.steps, "outcome": trial.outcome, "tuning": trial.tuning},
            **{"reported": reported, "final_loss": end and end.loss, "final_fall": end and end.fall},
            **_settings(record, trial),
        }


def _settings(record: GroupRecord, trial: TrialRecord) -> dict[str, Any]:
    """The knobs of a trial and the settings of its run, each under its name; each part of several has its own."""
    knobs = {f.name: getattr(trial.knobs, f.name) for f in fields(KnobRecord) if f.name not in ("seed", "lr", "other")}
    run: dict[str, Any] = {}
    for name, value in record.run.items():
        if name in ("revisions", "sources") and isinstance(value, Mapping):
            run |= {f"{name}.{part}": number for part, number in value.items()}
        elif name != "model":
            run[f"run.{name}" if name in FREE else name] = value
    return knobs | run


def _guesses(results: Results) -> dict[str, dict[str, dict[int, dict[str, float]]]]:
    """Task to metric to size to baselines, by the metrics that the records of a task counted."""
    by_label: dict[str, set[str]] = {}
    tasks: dict[str, dict[int, TaskRecord]] = {}
    for record, trial in results.recorded_trials():
        label, own = record.task.label, metrics.NAMES.get(record.task.metric, record.task.metric)
        tasks.setdefault(label, {})[id(record.task)] = record.task
        of_task = by_label.setdefault(label, {own})
        for counts in trial.evaluations.values():
            of_task |= {metric for metric, (right, total) in COUNTED.items() if right in counts and counts.get(total)}
    guesses: dict[str, dict[str, dict[int, dict[str, float]]]] = {}
    for label, of_task in sorted(tasks.items()):
        for metric in (metric for metric in METRICS if metric in by_label[label]):
            sizes = guesses.setdefault(label, {}).setdefault(metric, {})
            for task in of_task.values():
                sizes |= {n: at for n, at in floors_by(task, metric).items() if n not in sizes}
    return guesses


def _baselines(guesses: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the columns that the lines of each baseline share."""
    texts = dict.fromkeys(("model", "family", "outcome"), BASELINE)
    for label, by_metric in guesses.items():
        for name in dict.fromkeys(name for by_size in by_metric.values() for at in by_size.values() for name in at):
            names = {"task": label, "scheme": name, "label": name}
            yield dict.fromkeys(HEAD) | names | texts | {"tuning": False, "reported": True}


Line = tuple[int, int, int, int, int, float, int]


def _lines(
    pairs: Sequence[tuple[GroupRecord, TrialRecord]],
    baselines: Sequence[Mapping[str, Any]],
    guesses: Mapping[str, Any],
    bins: bool,
) -> Iterator[Line]:
    """The numbers of each trial and of each baseline, in the order of their heads."""
    for k, (record, trial) in enumerate(pairs):
        if trial.outcome == "diverged":
            yield from _diverged(k, record, guesses[record.task.label])
            continue
        for part, evaluations in enumerate((trial.evaluations, trial.validation or {})):
            for size, counts in sorted(evaluations.items()):
                for m, (metric, (right, total)) in enumerate(COUNTED.items()):
                    if right in counts and counts.get(total):
                        yield k, part, size, WHOLE, m, metrics.share(counts, metric), counts.get("rows", 0)
        if bins:
            yield from _binned(k, record.task, trial)
    for k, head in enumerate(baselines, len(pairs)):
        yield from _guessed(k, guesses[head["task"]], head["scheme"])


def _diverged(k: int, record: GroupRecord, by_metric: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the lines of a trial that diverged: the uniform baseline, or if it is unknown no share, and no loss."""
    for metric in by_metric:
        at = floors_by(record.task, metric)
        for size in sizes_of(record):
            value = at.get(size, {}).get("uniform", None if metric in LOSSES else 0.0)
            if value is not None:
                yield k, 0, size, WHOLE, METRICS.index(metric), value, 0


def _guessed(k: int, by_metric: Mapping[str, Mapping[int, Mapping[str, float]]], name: str) -> Iterator[Line]:
    """Yield the lines of one baseline."""
    for metric, by_size in by_metric.items():
        for size, values in sorted(by_size.items()):
            if name in values:
                yield k, 0, size, WHOLE, METRICS.index(metric), values[name], 0


def _binned(k: int, task: TaskRecord, trial: TrialRecord) -> Iterator[Line]:
    """The accuracy and the loss of a trial in each bin of positions."""
    for size, sums in sorted((trial.places or {}).items()):
        task_bins, n = (task.places or {}).get(size, {}), trial.evaluations.get(size, {}).get("rows", 0)
        for m, name, unit in ((0, "right", 1.0), *((METRICS.index(u), "nats", PARTS * LOSSES[u]) for u in LOSSES)):
            for b, (part, many) in enumerate(zip(sums.get(name, ()), task_bins.get("scored", ()), strict=False)):
                if many:
                    yield k, 0, size, b * task_bins["width"], m, part / many / unit, n


def _compact(column: pandas.Series) -> Any:
    """A column as an array: numbers, whole ones too where some are missing, and else categories."""
    values = [value for value in column if value is not None and value == value]
    kinds = {*map(type, values)}
    if kinds == {bool} and len(values) == len(column):
        return column.to_numpy(bool)
    if kinds == {int}:
        return column.astype("Int64" if len(values) < len(column) else "int64").array
    if kinds <= {int, float}:
        return column.to_numpy(float)
    return column.map(str, na_action="ignore").astype("category").array
