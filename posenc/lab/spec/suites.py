"""Defaults of a suite for its runs: the model, and the length at which each task trains.

Tasks name their suites (`Task.suites`); the rest is data, in `suites.toml`. A suite of somebody else's tasks needs no
entry there, as they know their sizes. Only what looks at tasks needs jax.
"""

from __future__ import annotations

import dataclasses
import functools
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posenc.lab.models import kinds
from posenc.lab.spec import settings
from posenc.lab.spec.run import Plan, Run

if TYPE_CHECKING:
    from posenc.lab.tasks import Task


@dataclass(frozen=True)
class Suite:
    """Tasks under one name, and how they train unless somebody says otherwise."""

    name: str
    idea: str = ""
    presets: tuple[str, ...] = ()
    """The published settings that its tasks come from."""
    run: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the runs of all its tasks."""
    plan: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the plan."""
    apart: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings of the runs of single tasks."""

    def __post_init__(self):
        object.__setattr__(self, "presets", tuple(self.presets))
        for fields in (self.run, *self.apart.values()):
            Run(**fields)
        Plan(**self.plan)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The texts of its tasks. Refuses a suite that there is not."""
        from posenc.lab import tasks

        return tasks.suite(self.name)

    @property
    def runs(self) -> tuple[Run, ...]:
        """Return a run of each of its tasks, by the suite's defaults."""
        return tuple(Run(**{"task": task, **self.of(task)}) for task in self.tasks)

    def of(self, task: str) -> dict[str, Any]:
        """Return the suite's settings of one of its tasks: its published length, and the settings of its own."""
        from posenc.lab import tasks

        parsed = tasks.parse(task)
        return {"model": usual_model(parsed), "length": parsed.sizes.train[1], **self.run, **self.apart.get(task, {})}


def usual_model(task: Task) -> str:
    """The model of a run on this task that names none."""
    return kinds.usual(task.directions, task.layout.value == "seq2seq")


def named(values: Iterable[Any]) -> tuple[Suite, ...]:
    """Return the suites among some names of tasks. Raises `ValueError` for unknown suites."""
    names = dict.fromkeys(v.strip().removeprefix(settings.SUITE).strip() for v in values if settings.is_suite(v))
    suites = tuple(SUITES.get(name, Suite(name)) for name in names)
    for suite in suites:
        _ = suite.tasks
    return suites


@dataclass(frozen=True)
class Usual:
    """Defaults of runs, weakest first: built in, suite, preset.

    A preset comes before a suite, as it was asked for by its name. But it is one cell of its paper, with the length and
    the sizes of one task. Any other task of that paper keeps its own, alone as in its suite.
    """

    run: Run
    plan: Plan
    preset: str | None = None
    suites: tuple[Suite, ...] = ()

    @functools.cached_property
    def _has(self) -> dict[str, Suite]:
        """The first suite that has a task."""
        return {task: suite for suite in reversed(self.suites) for task in suite.tasks}

    def of(self, task: str) -> dict[str, Any]:
        """Return the settings of a task in the first suite that has it; beside a preset, its published sizes."""
        if self.preset is None:
            return self._has[task].of(task) if task in self._has else {}
        if task == self.run.task:
            return {"length": self.run.length}
        name = task.partition("(")[0].strip()
        papers = (suite for suite in SUITES.values() if self.preset in suite.presets and name in suite.tasks)
        return next(({"length": suite.of(task)["length"], "shortest": None} for suite in papers), {})

    def filled(self, fields: Mapping[str, Any]) -> Run:
        """Return the run with these fields, the others by default."""
        return dataclasses.replace(self.run, **{**self.of(fields.get("task", self.run.task)), **fields})

    def planned(self, fields: Mapping[str, Any], tasks: Iterable[str]) -> Plan:
        """Return the plan with these fields, the others by default, for runs of these tasks.

        There is one plan for all. So suites decide a field only if all tasks are theirs and they agree. The sizes of a
        preset hold only if no task of its paper was published with another length.
        """
        lent, plans = [self.of(task) for task in tasks], [suite.plan for suite in self.suites]
        if self.preset is not None:
            usual = (
                {"sizes": None}
                if any(defaults.get("length", self.run.length) != self.run.length for defaults in lent)
                else {}
            )
        else:
            usual = plans[0] if all(lent) and all(plan == plans[0] for plan in plans) else {}
        return dataclasses.replace(self.plan, **{**usual, **fields})


def _read(path: Path) -> dict[str, Suite]:
    with path.open("rb") as file:
        usual = tomllib.load(file)
    return {name: Suite(name, **fields) for name, fields in usual.items()}


SUITES = _read(Path(__file__).with_suffix(".toml"))
