"""An experiment: a name, runs, a plan. An experiment file, a TOML file and `--grid` all make this one object."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from posenc.lab.spec import settings as words
from posenc.lab.spec.presets import PRESETS
from posenc.lab.spec.run import Continuation, Plan, Run
from posenc.lab.spec.suites import Usual, named
from posenc.lab.store.disk import check_name
from posenc.language import grammar


class NothingMatches(ValueError):
    """A filter that leaves nothing; the command line exits 3."""


@dataclass(frozen=True)
class Header:
    """Header of an experiment file."""

    claim: str = ""
    source: str = ""
    cost: str = ""
    command: str = ""
    variation: str = ""
    result: str = ""
    setting: str = ""
    """The differences of the setting from that of the source."""

    @property
    def attempted(self) -> bool:
        """Tell whether the experiment is to be run here; one too dear for that says "not attempted" as its result."""
        return not self.result.startswith("not attempted")


@dataclass(frozen=True)
class Experiment:
    """Runs and how they are repeated, under a name."""

    name: str
    runs: tuple[Run, ...]
    plan: Plan = Plan()
    source: str = ""
    """How it was asked for: a file, or words of the command line."""
    header: Header = Header()
    figure: Callable[[Any], Any] | None = dataclasses.field(default=None, compare=False, repr=False)
    """Draws the experiment's own figure from its results."""
    words: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False, repr=False)
    """Its `titles`, `names` and what sizes are `counted` in, where it gives them: `posenc.lab.results.words`."""
    metric: str | Mapping[str, str] | None = dataclasses.field(default=None, compare=False, repr=False)
    """Metric of its figure, of all tasks or by task, if it is not the usual one."""
    published: tuple[Any, ...] = dataclasses.field(default=(), compare=False, repr=False)
    """Published numbers and orders, and our predictions, of `posenc.lab.results.published`."""
    preset: str | None = dataclasses.field(default=None, compare=False)
    """The published setting that it started from, where it says so."""
    suites: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    """The suites that it asked for, whose settings are the weakest."""

    def __post_init__(self):
        check_name(self.name)
        object.__setattr__(self, "runs", tuple(self.runs))
        if not isinstance(self.plan, Plan):
            raise TypeError(f"The plan of {self.name!r} is {self.plan!r}, which is not a Plan.")
        if not self.runs:
            raise ValueError(f"The experiment {self.name!r} has no runs; give it one or more.")
        seen: set[Run] = set()
        for run in self.runs:
            if not isinstance(run, Run):
                raise TypeError(f"The experiment {self.name!r} holds {run!r}, which is not a Run.")
            if run in seen:
                raise ValueError(f"The experiment {self.name!r} holds a run twice: {run.scheme} on {run.task}.")
            seen.add(run)

    @property
    def trials(self) -> int:
        """How many models are trained."""
        return len(self.runs) * self.plan.trials

    def only(self, texts: Sequence[str]) -> Experiment:
        """The runs that have these settings: `only(["scheme=rope,alibi"])`. Raises `NothingMatches`."""
        runs = self.runs
        for text in texts:
            name, choices = words.pair(text, "--only")
            if name not in words.fields(Run):
                raise words.unknown_setting("a run", name, words.fields(Run))
            has = {_key(name, getattr(run, name)): getattr(run, name) for run in self.runs}
            wanted = []
            for value in words.several(choices, name):
                each = [_key(name, words.value(name, v)) for v in words.expanded(name, [value])]
                if not set(each) & set(has) and name in ("scheme", "task"):
                    meant = {_meant(name, text) for text in each}
                    each = [text for text in has if _meant(name, text) in meant]
                if not set(each) & set(has):
                    raise NothingMatches(f"No run has {name}={value}; there are {', '.join(map(str, has.values()))}.")
                wanted += each
            runs = tuple(run for run in runs if _key(name, getattr(run, name)) in wanted)
        if not runs:
            raise NothingMatches(f"No run has {' and '.join(texts)} at once; {len(self.runs)} were looked at.")
        return dataclasses.replace(self, runs=runs)

    def changed(self, texts: Mapping[str, str]) -> Experiment:
        """Return the experiment with settings of all runs or of the plan changed: `changed({"steps": "200", "width":
        "32"})`."""
        run, plan = words.typed(texts)
        if words.is_suite(run.get("task")):
            raise ValueError(f"task={run['task']} is several tasks, and these runs have theirs; sweep it by --grid.")
        runs = dict.fromkeys(dataclasses.replace(r, **run) for r in self.runs)
        return dataclasses.replace(self, runs=tuple(runs), plan=dataclasses.replace(self.plan, **plan))


def grid(base: Run, **axes: Iterable[Any]) -> tuple[Run, ...]:
    """Every combination of the values given, the first axis outermost: `grid(Run(), scheme=["rope", "alibi"])`.

    A suite stands for its tasks: `grid(Run(), task="suite:probes")`, or among others in a list. What `base` says holds
    for all of them; `from_words(["task=suite:probes"]).runs` trains each as its suite says.
    """
    return _crossed(Usual(base, Plan()), {}, axes)


def _crossed(usual: Usual, settings: dict[str, Any], axes: Mapping[str, Iterable[Any]]) -> tuple[Run, ...]:
    """Return the runs of a grid; settings that are not given take their defaults."""
    lists = {name: _axis(name, values) for name, values in axes.items()}
    points = [dict(zip(lists, point, strict=True)) for point in itertools.product(*lists.values())]
    runs = tuple(usual.filled({**settings, **point}) for point in points)
    for name, values in lists.items():
        if len({getattr(run, name) for run in runs}) < len(values):
            raise ValueError(f"{name} is given one value twice: {', '.join(map(str, values))}.")
    return runs


def _axis(name: str, values: Iterable[Any]) -> list[Any]:
    if name not in words.fields(Run):
        raise words.unknown_setting("a run", name, words.fields(Run))
    if name == "task" and words.is_suite(values):
        values = [values]
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"The axis {name!r} takes a list of values, not {values!r}.")
    listed = words.expanded(name, values)
    if not listed:
        raise ValueError(f"The axis {name!r} has no values; give one or more.")
    return listed


def starting(preset: str | None) -> tuple[Run, Plan]:
    """Return the defaults of a run and a plan: as published under this name, or the usual ones."""
    if preset is None:
        return Run(), Plan()
    if preset not in PRESETS:
        raise words.unknown("preset", preset, PRESETS, "`posenc list presets` has all")
    return PRESETS[preset].run, PRESETS[preset].plan


def from_words(
    grids: Sequence[str],
    sets: Sequence[str] = (),
    *,
    name: str | None = None,
    seeds: str | None = None,
    preset: str | None = None,
    yes: bool = False,
) -> Experiment:
    """The experiment that `--grid scheme=rope,alibi task=even_pairs --set width=64 --seeds 5 --name mine` asks for.

    The tasks of a suite are as the suite says, unless a preset is named.
    """
    more = [] if seeds is None else [f"seeds={seeds}"]
    axes, texts = words.texts(grids, "--grid"), words.texts([*sets, *more], "--set")
    parts = (
        ("--preset", [preset] * bool(preset)),
        ("--grid", grids),
        ("--set", sets),
        ("--seeds", [seeds] * bool(seeds)),
    )
    source = " ".join(f"{option} {' '.join(values)}" for option, values in parts if values)
    return from_texts(axes, texts, name=name, source=source, preset=preset, yes=yes)


def from_texts(
    axes: Mapping[str, str],
    texts: Mapping[str, str],
    *,
    name: str | None = None,
    source: str = "",
    preset: str | None = None,
    yes: bool = False,
) -> Experiment:
    """The experiment of every combination of the values in `axes`, with the settings in `texts` for all.

    Each setting is a text by its name. What is open is as in the preset, or else as suites say of their tasks.
    """
    run, plan = words.typed(texts)
    crossed: dict[str, list[Any]] = {}
    for key, text in axes.items():
        if key in texts:
            raise ValueError(f"{key} is given twice; give it once, by --grid or by --set.")
        values = words.expanded(key, words.several(text, key))
        if words.owner(key) is Run:
            crossed[key] = [words.value(key, v) for v in values]
        elif len(values) == 1 or isinstance(getattr(Plan(), key), tuple) or key == "sizes":
            plan[key] = words.value(key, text)
        else:
            raise ValueError(f"{key} is one for a whole plan, but --grid gives {len(values)}; sweep once for each.")
    tasks = words.several(axes["task"], "task") if "task" in axes else []
    if words.is_suite(run.get("task")):
        tasks = words.several(run.pop("task"), "task")
        crossed = {"task": words.expanded("task", tasks), **crossed}
    suites = named(tasks)
    usual = Usual(*starting(preset), preset, suites)
    planned = usual.planned(plan, crossed.get("task", [run.get("task", usual.run.task)]))
    check_many(math.prod(map(len, crossed.values())) * planned.trials, yes)
    runs = _crossed(usual, run, crossed)
    origin = {"preset": preset, "suites": tuple(suite.name for suite in suites)}
    return Experiment(name or suggested(runs), runs, planned, source, **origin)


def check_many(trials: int, yes: bool) -> None:
    """Refuse a very large sweep that was not confirmed."""
    if trials > words.MANY and not yes:
        raise ValueError(f"This sweep has {trials} trials, more than {words.MANY}; give fewer, or confirm by --yes.")


def suggested(runs: Sequence[Run]) -> str:
    """A name for runs that were given none, from what they train: "rope-reverse_string"."""
    parts = {n: sorted({getattr(r, n) for r in runs}) for n in ("scheme", "task")}
    name = "-".join(v[0] if len(v) == 1 else f"{len(v)}_{n}s" for n, v in parts.items())
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("_.-")[:60] or "sweep"


def _key(name: str, value: Any) -> Any:
    """A setting in a form in which equal schemes are equal texts, however they are spaced."""
    if name == "then" and value is not None:
        further = Continuation.read(value)
        return str(further._replace(scheme=_key("scheme", further.scheme)))
    return grammar.write(grammar.read(value)) if isinstance(value, str) else value


def _meant(name: str, text: str) -> str:
    """The shortest text of a scheme or a task, in which its defaults are left out however it is spelled."""
    from posenc import naming
    from posenc.lab import tasks

    home = naming if name == "scheme" else tasks
    try:
        return home.spec(home.parse(text))
    except (ValueError, TypeError):  # it is refused where it is trained
        return text
