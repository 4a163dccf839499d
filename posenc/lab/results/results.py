"""Records of a sweep, read from run folders and committed bundles. No jax; `posenc.load` makes a table of them.

A row is one trial at one size. Settings that differ among runs of one scheme on one task become part of the scheme's
label, so that two models are never averaged as one.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from posenc.lab import metrics
from posenc.lab.metrics import LOSSES
from posenc.lab.models import kinds
from posenc.lab.results.floors import complete, floors_by, uniform
from posenc.lab.results.words import Words
from posenc.lab.spec.run import Run
from posenc.lab.store import disk, records
from posenc.lab.store import folder as store
from posenc.lab.store.schema import GroupRecord, PlannedTrial, TaskRecord, TrialRecord, UnfinishedTrial
from posenc.language.echo import echoed

CHOICES = ("task", "scheme", "family", "seed", "lr")
"""Facts by which results can be chosen."""
METRICS = ("accuracy", "exact", "last", "beyond", *LOSSES)
"""Metrics by which results can be read. Four are shares that are right: of answer tokens, whole answers, last answer
tokens, and tokens beyond training. At trained sizes the last are all tokens. Two are the mean cross-entropy, in nats
and in bits."""
K, V = TypeVar("K"), TypeVar("V")
NAMED = 3
"""Trials of a record that a problem names; of more, their number is given."""
_FREE = ("task", "scheme")
_KNOBS = ("weight_decay", "warmup", "clip")
_LATER = {f.name: f.default for f in fields(Run) if f.metadata.get("later")}
"""Settings that records leave out while they are at their default."""


class Row(NamedTuple):
    """One trial at one size."""

    task: str
    scheme: str
    """As tables call it, with the settings that vary."""
    family: str
    trial: str
    seed: int
    lr: float
    steps: int
    outcome: str
    size: int
    trained: bool
    """True if the size is one of the trained ones."""
    trained_from: int
    trained_to: int
    metric: str
    value: float
    """The share right, or a loss, by the metric; for a diverged trial the uniform guess."""
    floor: float
    """Share that the uniform guess gets right."""
    exact: float
    """The share of whole answers right; NaN where they were not counted."""
    rows: int
    """How many examples were evaluated."""


COLUMNS = Row._fields


@dataclass(frozen=True)
class Results:
    """Records, the trials that have none, and what was wrong with the files."""

    name: str
    records: tuple[GroupRecord, ...]
    """Without the trials that chose a learning rate and are not reported: those are moved to `tuning`. Floors that one
    lacks are those of its task in the others."""
    unfinished: tuple[UnfinishedTrial, ...] = ()
    problems: tuple[str, ...] = ()
    folder: Path | None = None
    unreadable: int = 0
    """How many records the problems leave out."""
    varied: tuple[str, ...] | None = None
    """The settings in labels; found in the records unless given, as by `only`, which keeps labels as they were."""
    words: Words = Words()
    """Words of figures for tasks, lines and sizes."""
    tuning: tuple[GroupRecord, ...] = ()
    """The trials that chose learning rates, always by the metric of their task."""
    own: tuple[GroupRecord, ...] | None = None
    """The records by the metrics of their tasks, which choose learning rates, if another metric is shown."""

    def __post_init__(self):
        if any(trial.tuning for record in self.records for trial in record.trials):
            object.__setattr__(self, "tuning", (*self.tuning, *_kept(self.records, lambda _, trial: trial.tuning)))
            object.__setattr__(self, "records", _kept(self.records, lambda _, trial: not trial.tuning))
        tasks = iter(complete([record.task for record in (*self.records, *self.tuning)]))
        for name in ("records", "tuning"):
            full = tuple(replace(record, task=next(tasks)) for record in getattr(self, name))
            object.__setattr__(self, name, full)

    def rows(self) -> list[Row]:
        """One row per reported trial and size, in a fixed order."""
        return [*self._reported_rows]

    def tuning_rows(self) -> list[Row]:
        """Return the rows of the trials that chose a learning rate, which are not reported."""
        return self._ordered(self.tuning)

    def only(self, **where: str | int | float | tuple | list | set) -> Results:
        """The results of some tasks, schemes or seeds: `results.only(scheme=("rope", "alibi"), task="copy")`.

        A scheme is chosen by its label in tables, or by its text alone: "rope" is also every "rope (width=32)". The
        seeds that chose a learning rate stay, whichever seeds are reported.
        """
        unknown = sorted(set(where) - set(CHOICES))
        if unknown:
            raise ValueError(f"Results cannot be chosen by {unknown[0]!r}; take {', '.join(CHOICES)}.")
        wanted = {k: set(v) if isinstance(v, tuple | list | set) else {v} for k, v in where.items()}

        def meets(record: GroupRecord | PlannedTrial, trial: TrialRecord | PlannedTrial) -> bool:
            facts = self._facts(record, trial)
            return all(values & set(facts[key]) for key, values in wanted.items() if key in facts)

        rest = tuple(u for u in self.unfinished if meets(u, u))
        records, tuning = _kept(self.records, meets), _kept(self.tuning, meets)
        return replace(self, records=records, unfinished=rest, varied=self.varying, tuning=tuning)

    def shown(self, metric: str | Mapping[str, str] | None = None) -> Results:
        """Return these results by the metric that every table, figure and comparison shows, with its floors. It is the
        one requested, for all tasks or by task; otherwise `shown_metrics` chooses. For answers at every token that is
        `beyond`, or in older records the last token, since the mean over tokens hides where a model stops.

        Older records hold floors of their own metric alone. For others the guess among all answers is known, which gets
        the last token right as often as any. A diverged run enters as that guess, or as 0 if it is not known. Raises
        `ValueError` for a metric that a record cannot give.
        """
        for name in [metric] if isinstance(metric, str) else (metric or {}).values():
            if name not in METRICS:
                raise ValueError(f"No metric is called {echoed(name)}; take one of {', '.join(METRICS)}.")
        telling = self.shown_metrics()
        telling |= dict.fromkeys(telling, metric) if isinstance(metric, str) else dict(metric or {})
        shown = tuple(_by(record, telling[record.task.label]) for record in self.records)
        return replace(self, records=shown, own=self.own or self.records)

    def shown_metrics(self) -> dict[str, str]:
        """Return task to the metric that shows most of it, which tables use unless another is requested."""
        by_task = grouped((record.task.label, record) for record in self.own or (*self.records, *self.tuning))
        return {label: _telling(of) for label, of in by_task.items()}

    def choices(self, name: str) -> list[Any]:
        """The values of a column by which results can be chosen, of unfinished trials too."""
        values = (value for r, t in self._trials() for value in self._facts(r, t).get(name, ()))
        return sorted(dict.fromkeys(values))

    def tasks(self) -> dict[str, TaskRecord]:
        """Task label to task, in order of label, with the floors and the range of training sizes of all its records."""
        return dict(self._tasks)

    @cached_property
    def _tasks(self) -> dict[str, TaskRecord]:
        tasks: dict[str, TaskRecord] = {}
        reported = {record.task.label for record in self.records}
        alone = [record for record in self.tuning if record.task.label not in reported]
        for task in sorted((record.task for record in (*self.records, *alone)), key=lambda task: task.label):
            before = tasks.get(task.label, task)
            ends = (*before.trained, *task.trained)
            floors = {**task.floors, **before.floors}
            tasks[task.label] = replace(before, trained=(min(ends), max(ends)), floors=floors)
        return tasks

    def models(self) -> dict[tuple[str, str], str]:
        """Task and label to the name of the model, of reported trials."""
        named = ((r, t, str(r.run["model"]).partition("(")[0]) for r in self.records for t in r.trials)
        return {(record.task.label, self.label(record, trial)): model for record, trial, model in named}

    def trials(self) -> list[str]:
        """The ids of all trials with a result."""
        return sorted(trial.id for _, trial in self.recorded_trials())

    def recorded_trials(self) -> list[tuple[GroupRecord, TrialRecord]]:
        """All trials with a result, those that chose a rate among them, each after its record."""
        return [(record, trial) for record in self._all_records for trial in record.trials]

    def provenance(self) -> dict[str, list[str]]:
        """Return the sources of the numbers: commits, libraries and devices, each with all values that occur."""
        keys = ("posenc", "commit", "python", "jax", "flax", "device")
        facts = {k: sorted({str(r.provenance[k]) for r in self._all_records if r.provenance.get(k)}) for k in keys}
        return {k: v for k, v in facts.items() if v}

    def label(self, record: GroupRecord | PlannedTrial, trial: TrialRecord | PlannedTrial) -> str:
        """The scheme of a trial, with the settings in which it differs from others of that scheme on that task."""
        if not self.varying:
            return record.label
        if (label := self._labels.get((record.label, trial.id))) is None:
            facts = _settings(record) | _knobs(trial)
            varied = [f"{k}={facts[k]}" for k in self.varying if k in facts]
            label = f"{record.label} ({', '.join(varied)})" if varied else record.label
            self._labels[record.label, trial.id] = label
        return label

    @cached_property
    def _labels(self) -> dict[tuple[str, str], str]:
        """Scheme and trial to the label that was found for it."""
        return {}

    @property
    def _all_records(self) -> tuple[GroupRecord, ...]:
        return (*self.records, *self.tuning)

    @cached_property
    def _reported_rows(self) -> tuple[Row, ...]:
        return tuple(self._ordered(self.records))

    def _ordered(self, records: Sequence[GroupRecord]) -> list[Row]:
        rows = [row for record in records for row in self._rows(record)]
        return sorted(rows, key=attrgetter("task", "scheme", "lr", "seed", "size", "trial"))

    def _rows(self, record: GroupRecord) -> Iterator[Row]:
        task, (low, high) = record.task, record.task.trained
        floors = {n: uniform(task, n) for n in sizes_of(record)}
        for trial in record.trials:
            head = (task.label, self.label(record, trial), record.family, trial.id)
            knobs = (trial.knobs.seed, trial.knobs.lr, trial.steps, trial.outcome)
            for n, floor in floors.items():
                counts = trial.evaluations.get(n, {})
                guess = math.nan if task.metric in LOSSES and not floor else floor  # a loss of 0 would be the best
                value = guess if trial.outcome == "diverged" else metrics.share(counts, task.metric)
                if math.isnan(value):  # not evaluated, or nothing was scored there
                    continue
                exact = metrics.share(counts, "exact") if "exact" in counts else math.nan
                size_facts = (n, low <= n <= high, low, high, task.metric)
                yield Row(*head, *knobs, *size_facts, value, floor, exact, counts.get("rows", 0))

    def _trials(self) -> list[tuple[GroupRecord, TrialRecord] | tuple[UnfinishedTrial, UnfinishedTrial]]:
        """All trials, each with what it shares with others of its group."""
        return self.recorded_trials() + [(u, u) for u in self.unfinished]

    def _facts(self, record: GroupRecord | PlannedTrial, trial: TrialRecord | PlannedTrial) -> dict[str, tuple]:
        """Return the facts by which a trial can be chosen; its scheme by its text and by its label. The seed of a trial
        that only chose a rate is not one of them."""
        schemes = tuple(dict.fromkeys((record.label, self.label(record, trial))))
        knobs = {"lr": (trial.knobs.lr,)} | ({} if trial.tuning else {"seed": (trial.knobs.seed,)})
        return {"task": (_task(record),), "scheme": schemes, "family": (record.family,), **knobs}

    @cached_property
    def varying(self) -> tuple[str, ...]:
        """The settings that are part of labels."""
        if self.varied is not None:
            return self.varied
        seen: dict[tuple, set] = {}
        of_records = ((record, [_settings(record), *map(_knobs, record.trials)]) for record in self._all_records)
        of_planned = ((trial, [_settings(trial), _knobs(trial)]) for trial in self.unfinished)
        for record, parts in (*of_records, *of_planned):
            task = _task(record)
            for key, value in (item for part in parts for item in part.items()):
                if value is not None:  # a setting that the model does not use
                    same = (type(value), value) if isinstance(value, Hashable) else records.canonical(value)
                    seen.setdefault((key, task, record.label), set()).add(same)
        return tuple(sorted({key for (key, *_), values in seen.items() if len(values) > 1}))


def load(path: str | os.PathLike) -> Results:
    """Return the records of a run folder, its name, or a committed bundle; unusable files are in `.problems`."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path is of type {type(path).__name__}; it is a run folder, its name, or a bundle of records.")
    where = disk.find(path)
    if where.is_file():
        bundle = records.read_bundle(where)
        name, stored, rest, folder = bundle.name, bundle.stored, bundle.unfinished, None
    else:
        name, stored, folder = where.resolve().name, store.read_records(where), where
        rest = store.unfinished(where, stored)
    problems = (*stored.problems, *unscored(stored.records))
    return Results(name, stored.records, tuple(rest), problems, folder, stored.unreadable)


def _telling(group_records: Sequence[GroupRecord]) -> str:
    """Return the metric that shows most of how far a model comes in one task's records."""
    own, read_by = group_records[0].task.metric, {record.task.read_by for record in group_records}
    if len(read_by) == 1 and None not in read_by:
        return read_by.pop()
    counts = [
        evaluation for record in group_records for trial in record.trials for evaluation in trial.evaluations.values()
    ]
    return "last" if own in ("token", "error") and counts and all("last" in each for each in counts) else own


def _by(record: GroupRecord, metric: str) -> GroupRecord:
    own, (part, total) = record.task.metric, metrics.ratio(metric)
    for trial in record.trials:
        for size, counts in trial.evaluations.items():
            if part not in counts:
                raise ValueError(
                    f"The records of {record.label!r} on {record.task.label!r} did not count {metric!r} at size {size};"
                    f" read them by {own!r}, the metric of the task, or train again under a new --name."
                )
            if total == "beyond_scored" and not counts.get(total):
                raise ValueError(
                    f"No answer token of {record.task.label!r} at size {size} is further out than those trained on;"
                    f" read it by {own!r}, the metric of the task."
                )
    if metrics.ratio(own) == metrics.ratio(metric) and (own == metric or metric not in LOSSES):
        return record
    unknown = metric in LOSSES and not all(floors_by(record.task, metric).values())
    if unknown and any(trial.outcome == "diverged" for trial in record.trials):
        raise ValueError(
            f"A diverged run of {record.label!r} on {record.task.label!r} counts as a guess, whose loss its records do"
            f" not tell; read them by {own!r}, the metric of the task."
        )
    return replace(record, task=replace(record.task, metric=metric, floors=floors_by(record.task, metric)))


def _settings(record: GroupRecord | PlannedTrial) -> dict[str, Any]:
    """Return the settings that a record's trials share, as labels call them."""
    run = {k: v for k, v in record.run.items() if k not in _FREE}
    run |= {"model": shortest_model(run["model"])} if "model" in run else {}
    parts = {f"revision of {part}": n for part, n in run.pop("revisions", {}).items()}  # which there are, others say
    parts |= {
        f"file of {part.removeprefix('file ')}": str(digest)[:8] for part, digest in run.pop("sources", {}).items()
    }
    return {**_LATER, **run, **parts}


def _knobs(trial: TrialRecord | PlannedTrial) -> dict[str, Any]:
    """The settings of a trial of its own."""
    return {k: v for k in _KNOBS if (v := getattr(trial.knobs, k)) is not None} | {"steps": trial.steps}


def _task(record: GroupRecord | PlannedTrial) -> str:
    return record.task.label if isinstance(record, GroupRecord) else record.task


@cache
def shortest_model(model: str) -> str:
    """A model's text without its defaults; one that is not installed here keeps what was written of it."""
    if model.partition("(")[0] not in kinds.MODELS.names():
        return model
    try:
        return kinds.spec(kinds.parse(model))
    except ValueError:  # of another version, or edited: what was written of it tells it from others
        return model


def unscored(group_records: Iterable[GroupRecord]) -> Iterator[str]:
    """Yield a sentence for the trials of each record that scored nothing at some sizes where they were evaluated."""
    for record in group_records:
        trials: dict[str, list[str]] = {}
        for trial in record.trials:
            if empty := [str(n) for n, counts in trial.evaluations.items() if metrics.scored_nothing(counts)]:
                trials.setdefault(", ".join(empty), []).append(f"{trial.id[:12]} of seed {trial.knobs.seed}")
        for sizes, names in trials.items():
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            which = f"{record.label} on {record.task.label}: {', '.join(names[:NAMED])}{more}"
            yield f"Trials of {which} scored nothing at size {sizes}, and have no number there."


def sizes_of(record: GroupRecord) -> list[int]:
    """Every size at which the record's task was measured, also for trials that diverged before they were."""
    return sorted({*record.task.floors, *(n for trial in record.trials for n in trial.evaluations)})


def _kept(records: Sequence[GroupRecord], keep: Callable[[GroupRecord, TrialRecord], bool]) -> tuple[GroupRecord, ...]:
    """The records with some of their trials, those without any left out."""
    filtered = (replace(record, trials=tuple(t for t in record.trials if keep(record, t))) for record in records)
    return tuple(record for record in filtered if record.trials)


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Each key to its values, in the order in which they come."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
