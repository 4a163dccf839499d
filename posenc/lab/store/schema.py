"""Types of plans and records: `read` makes them from JSON, `written` gives the same JSON back. No jax.

The types of the fields are the schema, which msgspec checks, ranges of numbers among it. `X` must be there, and `X |
None` may be null. `X | None = None` may be missing, as in older files, and is then not written either. Keys that this
version does not know are left out. `check_record` checks what types cannot. A checksum shows that a record is as it was
written, and not that posenc wrote it.
"""

from __future__ import annotations

import operator
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from posenc.lab.store.disk import check_name
from posenc.language.echo import echoed

T = TypeVar("T", bound="Part")
P = TypeVar("P", bound="PlannedTrial | TrialLine | AddedSeeds")
MOST, STEPS = 2**63 - 1, 2**31 - 1
"""The largest numbers that a file may hold, and the most steps or the largest size."""
Number = Annotated[int, Meta(ge=0, le=MOST)] | Annotated[float, Meta(ge=0, le=sys.float_info.max)]
Share = Annotated[int, Meta(ge=0, le=1)] | Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0, le=MOST)]
Seed = Annotated[int, Meta(ge=0, lt=2**32)]
Size = Annotated[int, Meta(ge=0, le=STEPS)]
Positive = Annotated[int, Meta(ge=1, le=STEPS)]
Point = Annotated[int, Meta(ge=-MOST, le=MOST)] | float | None
Counts = Mapping[str, Count]
"""Counts at one size, by name: "correct", "scored", "exact", "rows", "nats" (in 1,024ths), ..."""
Floors = Mapping[Size, Mapping[str, Share | None]]
Bins = Mapping[Size, Mapping[str, Count | list[Count]]]
TaskBins = Mapping[Size, Mapping[str, Count | list[Count] | Mapping[str, list[Count]]]]
METRICS = ("token", "accuracy", "error", "exact", "last", "beyond", "gain")
"""Metrics by the names in `posenc.lab.tasks.measure`, which needs jax."""
READ_BY = (*METRICS, "nats", "bits")
WHOLE_OF = {"correct": "scored", "exact": "rows", "last": "rows", "beyond": "beyond_scored", "gained": "gainable"}
"""Each count and the count that it is a part of."""
OLDER = "as before version 0.2.0, which this version does not read; train again, or read it with version 0.2.0"
TUNING = "tuning"
"""The role of a trial that helps to choose the learning rate of others and is not reported."""


@dataclass(frozen=True)
class Part:
    """A part of a file."""


@dataclass(frozen=True)
class KnobRecord(Part):
    """The knobs of a trial."""

    seed: Annotated[int, Meta(ge=-MOST, le=MOST)]
    lr: Number
    weight_decay: Number | None = None
    warmup: Number | None = None
    clip: Number | None = None


@dataclass(frozen=True)
class TrialRecord(Part):
    """The result of one trial."""

    id: str
    knobs: KnobRecord
    steps: Size
    outcome: str
    """"done" or "diverged"."""
    diverged_at: Size | None
    """The first step whose loss or update was not finite."""
    evaluations: Mapping[Size, Counts]
    """Size to counts on test examples; empty after divergence."""
    validation: Mapping[Size, Counts] | None = None
    """Size to counts on the examples by which a learning rate is chosen; none of a diverged trial."""
    curve: Mapping[str, list[Point]] | None = None
    """The loss along training."""
    places: Bins | None = None
    """Size to counts by bins of positions: "right" are the tokens that are right, "nats" their cross-entropy in
    1,024ths of a nat. Tasks of one answer have no bins."""
    role: str | None = None
    """"tuning" for a trial that helped to choose a learning rate; a trial that is reported has none."""

    def __post_init__(self):
        if self.outcome not in ("done", "diverged"):
            raise ValueError(f"the outcome {echoed(self.outcome)} has no record; only 'done' and 'diverged' do")
        if self.role not in (None, TUNING):
            raise ValueError(f"a trial has the role {echoed(self.role)}; only {TUNING!r} is known")

    @property
    def tuning(self) -> bool:
        """Tell whether it helped to choose a learning rate, and is not reported."""
        return self.role == TUNING


@dataclass(frozen=True)
class TaskRecord(Part):
    """The task of a group of trials, and the scores of guesses at it."""

    label: str
    metric: str
    trained: tuple[Size, Size]
    """The smallest and the largest size trained on."""
    floors: Floors
    """Size to the name of a guess to its score."""
    floors_last: Floors | None = None
    """Floors by the metric `last`."""
    floors_beyond: Floors | None = None
    """Floors by the metric `beyond`."""
    floors_accuracy: Floors | None = None
    """Floors of the tokens of whole answers."""
    places: TaskBins | None = None
    """Size to "width", the places of a bin, and "scored", how many tokens are scored in each."""
    first_beyond: Size | None = None
    """The first place further out than any trained on."""
    read_by: str | None = None
    """The metric that results are read by unless another is requested; that of the task if it is missing."""
    yardsticks: Mapping[Size, Mapping[str, list[Number]]] | None = None
    """Size to the name of a simple reader of the test rows to its mean loss in each bin of places, in nats."""


@dataclass(frozen=True)
class GroupRecord(Part):
    """The trials that one program finished together: a line of a log in `records/`."""

    run: Mapping[str, Any]
    """The settings that all trials share, written out in full, and `revisions`."""
    label: str
    """The scheme as tables call it."""
    family: str
    task: TaskRecord
    trials: tuple[TrialRecord, ...]
    provenance: Mapping[str, Any]
    """Versions, commit, devices and times."""

    @property
    def ids(self) -> list[str]:
        """The ids of its trials."""
        return [trial.id for trial in self.trials]


@dataclass(frozen=True)
class PlannedTrial(Part):
    """A trial to train, with what it shares with others."""

    id: str
    group: str
    run: Mapping[str, Any]
    knobs: KnobRecord
    steps: Size
    sizes: tuple[Size, ...]
    rows: Positive
    label: str
    family: str
    task: str
    segment: Positive = field(kw_only=True)
    """Steps between two looks at the host, which are the points of the loss curve."""
    reports: tuple[Seed, ...] | None = field(default=None, kw_only=True)
    """The seeds that train at the rate which this trial helps to choose; a trial that is reported itself has none."""

    @property
    def tuning(self) -> bool:
        """Tell whether it helps to choose a learning rate, and is not reported."""
        return self.reports is not None

    def __post_init__(self):
        if self.steps % self.segment:
            raise ValueError(f"it needs 'segment' as a divisor of its {self.steps} steps")


@dataclass(frozen=True)
class TrialLine(Part):
    """A line of a plan: a trial without what it shares with others."""

    id: str
    group: str
    knobs: KnobRecord
    run: str
    """The SHA-256 of what it shares, which stands in a line of its own."""


@dataclass(frozen=True)
class AddedSeeds(Part):
    """A line of a plan: seeds that a later command reports, and the tuning trials that choose their rate."""

    trials: tuple[str, ...]
    reports: tuple[Seed, ...]


@dataclass(frozen=True)
class UnfinishedTrial(PlannedTrial):
    """A planned trial without a result, and how far it came."""

    outcome: str


def read(cls: type[T], content: Any, where: str = "") -> T:
    """The part that JSON holds. Raises `ValueError` that names the first key which is not as its type says.

    `where` says in the message where the part was found; without it the part is called it.
    """
    try:
        return msgspec.convert(content, cls, str_keys=True)
    except msgspec.ValidationError as error:
        raise ValueError(_sentence(str(error), cls, content, where or "it")) from None


def written(part: Part) -> dict[str, Any]:
    """Return the part as JSON, its keys in the order of the file."""
    made = {f.name: (f.default is MISSING, getattr(part, f.name)) for f in fields(part)}
    return {name: _json(value) for name, (needed, value) in made.items() if needed or value is not None}


def read_line(cls: type[P], content: Any, where: str, remedy: str) -> P:
    """A part of a plan. The message of `ValueError` also says what to do."""
    try:
        line = read(cls, content, where)
    except ValueError as error:
        raise ValueError(f"{error}; {remedy}.") from None
    if not isinstance(line, AddedSeeds):
        check_name(line.group)
    return line


def check_record(record: GroupRecord) -> None:
    """Raise `ValueError` for a record whose numbers cannot be, with the first of them."""
    task = record.task
    if task.metric not in METRICS:
        raise ValueError(f"its metric is {echoed(task.metric)}; it is one of {', '.join(METRICS)}")
    low, high = task.trained
    if low > high:
        raise ValueError(f"it was trained on sizes from {low} to {high}; sizes ascend")
    if task.read_by is not None and task.read_by not in READ_BY:
        raise ValueError(f"it is read by {echoed(task.read_by)}; a metric is one of {', '.join(READ_BY)}")
    for size, bins in (task.places or {}).items():
        width = bins.get("width")
        if not (isinstance(width, int) and width >= 1 and isinstance(bins.get("scored"), list)):
            raise ValueError(f"its places at size {size} are {echoed(bins)}; they are a width and a list of counts")
        _check_losses(size, bins)
    for size, readers in (task.yardsticks or {}).items():
        scored = (task.places or {}).get(size, {}).get("scored", ())
        if wrong := [name for name, losses in readers.items() if len(losses) != len(scored)]:
            raise ValueError(f"its yardstick {echoed(wrong[0])} at size {size} is not a loss for each bin of places")
    _check_run(record.run)
    compiling = record.provenance.get("compiled")
    seconds = compiling.get("seconds") if isinstance(compiling, dict) else None
    if seconds is not None and not (type(seconds) in (int, float) and 0 <= seconds <= MOST):
        raise ValueError(f"it took {echoed(seconds)} seconds to compile; they are a finite number of at least 0")
    for trial in record.trials:
        _check_trial(trial, {"exact": "exact", "last": "last", "gain": "gained"}.get(task.metric, "correct"))
        _check_right(trial.places or {}, task, f"its trial {echoed(trial.id[:12])}")


def _check_losses(size: int, bins: Mapping[str, Any]) -> None:
    windows = bins.get("windows", {})
    exact = {name: bins[name] for name in ("unigram", "bayes") if name in bins}
    for name, losses in (exact | (windows if isinstance(windows, dict) else {"windows": windows})).items():
        if not (isinstance(losses, list) and len(losses) == len(bins["scored"])):
            raise ValueError(f"its exact losses {echoed(name)} at size {size} are not a count for each place")


def _check_right(places: Bins, task: TaskRecord, which: str) -> None:
    for size, bins in places.items():
        right, scored = bins.get("right"), (task.places or {}).get(size, {}).get("scored")
        if not isinstance(scored, list) or not isinstance(right, list) or len(right) != len(scored):
            raise ValueError(f"{which} has places at size {size} that its task has not")
        if (nats := bins.get("nats")) is not None and not (isinstance(nats, list) and len(nats) == len(scored)):
            raise ValueError(f"{which} has losses at size {size} that are not a count for each of its places")
        if any(map(operator.gt, right, scored)):
            wrong = next((a, b) for a, b in zip(right, scored, strict=True) if a > b)
            raise ValueError(f"{which} counts at size {size} {wrong[0]} right of {wrong[1]} at one place")


def planned(cls: type[P], content: Any, where: str, remedy: str) -> P:
    """A planned trial of a file; the message of `ValueError` says where it stands and what to do."""
    line = read_line(cls, content, where, remedy)
    try:
        _check_run(line.run)
    except ValueError as error:
        raise ValueError(f"{where} cannot be used: {error}; {remedy}.") from None
    return line


def _check_trial(trial: TrialRecord, right: str) -> None:
    which = f"its trial {echoed(trial.id[:12])}"
    if trial.diverged_at is not None and trial.diverged_at > trial.steps:
        raise ValueError(f"{which} diverged at step {trial.diverged_at} of {trial.steps}")
    if trial.validation is None and trial.outcome == "done":
        raise ValueError(f"{which} has no validation examples, {OLDER}")
    for by_size in (trial.evaluations, trial.validation or {}):
        for size, counts in by_size.items():
            try:
                _check_counts(counts, right)
            except ValueError as error:
                raise ValueError(f"{which} counts at size {size} {error}") from None


def _check_counts(counts: Counts, right: str) -> None:
    if "total" in counts:
        raise ValueError(f"a 'total', {OLDER}")
    for part, total in WHOLE_OF.items():
        if part in counts and counts[part] > counts.get(total, MOST):
            raise ValueError(f"{counts[part]} {part} of {counts[total]} {total}")
    if counts and not {right, WHOLE_OF[right]} <= counts.keys():
        raise ValueError(f"no {right if right not in counts else WHOLE_OF[right]}, of which its metric is made")


def _check_run(run: Mapping[str, Any]) -> None:
    """Check the settings of a run that are read; the others are shown as they are."""
    for name, kind, called in (("model", str, "a text"), ("revisions", dict, "a dict"), ("sources", dict, "a dict")):
        if not isinstance(run.get(name, kind()), kind):
            raise ValueError(f"{name} of its run is {echoed(run[name])}; it is {called}")


def _sentence(text: str, cls: type[Part], content: Any, called: str) -> str:
    """Return msgspec's complaint as the beginning of a sentence, with the value that is wrong."""
    path, value = _misfit(cls, content) or ("", content)
    place, why = path.removeprefix("."), text.partition(" - at `")[0]
    if lacks := re.fullmatch("Object missing required field `(.*)`", why):
        return f"{called} has no {lacks[1]!r}{place and f' in {place}'}"
    if "at `key` in" in text:
        return f"{called} has keys in {place} that are no sizes"
    if wanted := re.fullmatch("Expected (.*?)(, got .*)?", why):
        return f"{called} has {echoed(value)} as {place or 'content'}; {wanted[1].replace('`', '')} is needed"
    return f"{called} cannot be{place and f' in {place}'}: {why}"


def _misfit(hint: Any, content: Any) -> tuple[str, Any] | None:
    """The first value that is not of its type, behind its path."""
    try:
        msgspec.convert(content, hint, str_keys=True)
    except msgspec.ValidationError:
        inner = (_misfit(kind, value) and (key, *_misfit(kind, value)) for key, kind, value in _inside(hint, content))
        key, path, value = next(filter(None, inner), ("", "", content))
        return key + path, value
    return None


def _inside(hint: Any, content: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the parts of a value, each with its key and its type."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    for kind in typing.get_args(hint) if union else (hint,):
        inner, outer = typing.get_args(kind), typing.get_origin(kind)
        if is_dataclass(kind) and isinstance(content, dict):
            hints = typing.get_type_hints(kind, include_extras=True)
            yield from ((f".{name}", hints[name], content[name]) for name in hints if name in content)
        elif outer is Mapping and isinstance(content, dict):
            yield from ((f"[{echoed(key)}]", inner[1], value) for key, value in content.items())
        elif outer in (tuple, list) and isinstance(content, list):
            yield from ((f"[{n}]", inner[0], value) for n, value in enumerate(content))


def _json(value: Any) -> Any:
    if isinstance(value, Part):
        return written(value)
    return [_json(v) for v in value] if isinstance(value, tuple) else value
