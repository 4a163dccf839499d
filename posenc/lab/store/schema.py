"""What plans and records hold, as types: `read` makes them from JSON, `written` gives the same JSON back. No jax.

The types of the fields are the schema. `X` must be there; `X | None` may be null; `X | None = None` may be missing, as
in older files, and is then not written either. Keys that this version does not know are kept in `other`.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar, Union

from posenc.lab.store.disk import check_name
from posenc.language.echo import echoed

T = TypeVar("T", bound="Part")
P = TypeVar("P", bound="PlannedTrial | TrialLine")
Counts = Mapping[str, int]
"""What was counted at one size, by name: "correct", "total", "exact", "rows", "nats" (in 1,024ths), ..."""
_JSON = {str: str, int: int, float: int | float, tuple: list, Mapping: dict}
"""How JSON holds a type."""
TUNING = "tuning"
"""The role of a trial that helps to choose the learning rate of others and is not reported."""


@dataclass(frozen=True)
class Part:
    """A part of a file."""

    CALLED: ClassVar[str]
    """What messages call it."""
    other: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    """Keys that this version does not know."""


@dataclass(frozen=True)
class KnobRecord(Part):
    """The knobs of a trial."""

    CALLED: ClassVar[str] = "a trial's knobs"
    seed: int
    lr: float
    weight_decay: float | None = None
    warmup: float | None = None
    clip: float | None = None


@dataclass(frozen=True)
class TrialRecord(Part):
    """The result of one trial."""

    CALLED: ClassVar[str] = "a trial"
    id: str
    knobs: KnobRecord
    steps: int
    outcome: str
    """"done" or "diverged"."""
    diverged_at: int | None
    """The first step whose loss or update was not finite."""
    evaluations: Mapping[int, Counts]
    """Size to counts on test examples; empty after divergence."""
    validation: Mapping[int, Counts] | None = None
    """Size to counts on the examples by which a learning rate is chosen; older records have none."""
    curve: Mapping[str, Any] | None = None
    """The loss along training."""
    places: Mapping[int, Mapping[str, Any]] | None = None
    """Size to "right", how many tokens are right in each bin of places, and "nats", their cross-entropy in 1,024ths
    of a nat, which older records lack; still older ones, and tasks of one answer, have none."""
    role: str | None = None
    """"tuning" for a trial that helped to choose a learning rate; a trial that is reported has none."""

    def __post_init__(self):
        if self.outcome not in ("done", "diverged"):
            raise ValueError(f"the outcome {echoed(self.outcome)} has no record; only 'done' and 'diverged' do")
        if self.role not in (None, TUNING):
            raise ValueError(f"a trial has the role {echoed(self.role)}; only {TUNING!r} is known")

    @property
    def tuning(self) -> bool:
        """Whether it helped to choose a learning rate, and is not reported."""
        return self.role == TUNING


@dataclass(frozen=True)
class TaskRecord(Part):
    """The task of a group of trials, and the scores of guesses at it."""

    CALLED: ClassVar[str] = "a task"
    label: str
    metric: str
    trained: tuple[int, ...]
    """The smallest and the largest size trained on."""
    floors: Mapping[int, Mapping[str, float | None]]
    """Size to the name of a guess to its score."""
    floors_last: Mapping[int, Mapping[str, float | None]] | None = None
    """The same by the metric `last`."""
    floors_beyond: Mapping[int, Mapping[str, float | None]] | None = None
    """The same by the metric `beyond`."""
    places: Mapping[int, Mapping[str, Any]] | None = None
    """Size to "width", the places of a bin, and "scored", how many tokens are scored in each."""
    first_beyond: int | None = None
    """The first place further out than any trained on."""
    read_by: str | None = None
    """The metric that results are read by unless another is requested; that of the task where none is said."""
    yardsticks: Mapping[int, Mapping[str, Any]] | None = None
    """Size to the name of a simple reader of the test rows to its mean loss in each bin of places, in nats."""

    def __post_init__(self):
        if [type(n) for n in self.trained] != [int, int]:
            raise ValueError("a task needs 'trained' as two sizes")


@dataclass(frozen=True)
class GroupRecord(Part):
    """The trials that one program finished together: a file in `records/`."""

    CALLED: ClassVar[str] = "a record"
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
    """A trial to train: a line of `plan.jsonl`, with what it shares with others."""

    CALLED: ClassVar[str] = "a planned trial"
    id: str
    group: str
    run: Mapping[str, Any]
    knobs: KnobRecord
    steps: int
    sizes: tuple[int, ...]
    rows: int
    label: str
    family: str
    task: str
    segment: int | None = field(default=None, kw_only=True)
    """Steps between two looks at the host, which are the points of the loss curve; older plans have none."""
    reports: tuple[int, ...] | None = field(default=None, kw_only=True)
    """The seeds that train at the rate which this trial helps to choose; a trial that is reported itself has none."""

    @property
    def tuning(self) -> bool:
        """Whether it helps to choose a learning rate, and is not reported."""
        return self.reports is not None

    def __post_init__(self):
        if self.segment is not None and (self.segment < 1 or self.steps % self.segment):
            raise ValueError(f"{self.CALLED} needs 'segment' as a divisor of its {self.steps} steps")


@dataclass(frozen=True)
class TrialLine(Part):
    """A line of `plan.jsonl`: a trial without what it shares with others."""

    CALLED: ClassVar[str] = "a planned trial"
    id: str
    group: str
    knobs: KnobRecord
    run: str
    """The SHA-256 of what it shares, which stands in `runs.jsonl`."""


@dataclass(frozen=True)
class AddedSeeds(Part):
    """A line of `reports.jsonl`: seeds that a later command reports, and the tuning trials that choose their rate."""

    CALLED: ClassVar[str] = "a line of added seeds"
    trials: tuple[str, ...]
    reports: tuple[int, ...]


@dataclass(frozen=True)
class UnfinishedTrial(PlannedTrial):
    """A planned trial without a result, and how far it came."""

    CALLED: ClassVar[str] = "an unfinished trial"
    outcome: str


def read(cls: type[T], content: Any, where: str = "") -> T:
    """The part that JSON holds. Raises `ValueError` that names the first key which is not as its type says.

    `where` says in the message where the part was found; without it the part is called by its kind.
    """
    keys, has, called = _keys(cls), content if isinstance(content, dict) else {}, where or cls.CALLED
    made = {
        name: value if type(value := has.get(name)) is key.plain else _value(key, content, name, called, where)
        for name, key in keys.items()
    }
    other = {} if has.keys() <= made.keys() else {name: value for name, value in has.items() if name not in made}
    return cls(**made, other=other)


def written(part: Part) -> dict[str, Any]:
    """The same part as JSON, its keys in the order of the file."""
    found = {name: (key, getattr(part, name)) for name, key in _keys(type(part)).items()}
    return {name: _json(value) for name, (key, value) in found.items() if value is not None or key.null} | part.other


def read_line(cls: type[P], content: Any, where: str, remedy: str) -> P:
    """A planned trial. The message of `ValueError` also says what to do."""
    has = content if isinstance(content, dict) else {}
    needed = [name for name, key in _keys(cls).items() if not key.optional]
    if missing := [name for name in needed if name not in has]:
        raise ValueError(f"{where} has no {missing[0]!r}; {cls.CALLED} has {', '.join(needed)}.")
    try:
        line = read(cls, content, where)
    except ValueError as error:
        raise ValueError(f"{error}; {remedy}.") from None
    check_name(line.group)
    return line


class _Key(NamedTuple):
    hint: Any
    """The type without None."""
    null: bool
    optional: bool
    kind: Any
    """How JSON holds it."""
    part: bool
    """Whether it is a part itself."""
    by_size: bool
    inner: Any
    """The part that a tuple holds."""
    plain: Any
    """The type whose values are taken as they are, if there is one."""

    @property
    def called(self) -> str:
        return "sums by size" if self.by_size else getattr(self.kind, "__name__", "number")


@functools.cache
def _keys(cls: type[Part]) -> dict[str, _Key]:
    hints = typing.get_type_hints(cls)
    return {f.name: _key(hints[f.name], f.default is not MISSING) for f in fields(cls) if f.name != "other"}


def _key(hint: Any, optional: bool) -> _Key:
    kinds = typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,)
    (hint,) = (k for k in kinds if k is not types.NoneType)
    part, null = is_dataclass(hint), len(kinds) > 1 and not optional
    kind = dict if part else _JSON[typing.get_origin(hint) or hint]
    by_size = kind is dict and typing.get_args(hint)[:1] == (int,)
    as_it_is = () if part or by_size or kind is list else float if hint is float else kind
    inner = typing.get_args(hint)[0] if kind is list and is_dataclass(typing.get_args(hint)[0]) else None
    return _Key(hint, null, optional, kind, part, by_size, inner, as_it_is)


def _value(key: _Key, content: Any, name: str, called: str, where: str) -> Any:
    value = content.get(name) if isinstance(content, dict) else None
    if isinstance(content, dict) and (value is None and key.null or key.optional and name not in content):
        return None
    fits = isinstance(value, key.kind) and not isinstance(value, bool)  # True and False are not numbers
    if not fits or key.by_size and not (_are_sizes(value) and set(map(type, value.values())) <= {dict}):
        raise ValueError(f"{called} needs {name!r} as {key.called}")
    if key.part:
        return read(key.hint, value, where)
    if key.kind is list:
        return tuple(read(key.inner, v, where) for v in value) if key.inner else tuple(value)
    return {int(n): at for n, at in value.items()} if key.by_size else value


def _are_sizes(texts: Collection[str]) -> bool:
    """Whether keys are sizes as they are written: ASCII digits, none of them a leading 0, so that no two mean one."""
    return (
        all(map(str.isdecimal, texts))
        and max(map(len, texts), default=0) <= 10
        and all(str(int(text)) == text for text in texts)
    )


def _json(value: Any) -> Any:
    if isinstance(value, Part):
        return written(value)
    return [_json(v) for v in value] if isinstance(value, tuple) else value
