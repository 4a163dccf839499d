"""Experiments as TOML: `[run]` for all, `[grid]` crossed, each `[[zip]]` in step, each `[[exclude]]` left out.

[plan]
seeds = 5
[run]
width = 64
[grid]
scheme = ["rope", "alibi"]
task = ["even_pairs", "reverse_string"]
[[exclude]]
scheme = "alibi"
task = "even_pairs"

A suite stands for its tasks: `task = "suite:probes"`, which train as it says where the file does not. With `preset =
"ruoss"` at the top, what nothing is said of is as published.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import tomllib
from pathlib import Path
from typing import Any

from posenc.lab.spec import settings
from posenc.lab.spec.experiment import Experiment, Header, check_many, starting
from posenc.lab.spec.run import Plan, Run
from posenc.lab.spec.suites import Usual, named
from posenc.language.echo import echoed

DOTS = 256
"""Of one line: a name of thousands of parts takes minutes to read."""
_TEXTS = ("name", "source", "preset")
_TABLES = (*_TEXTS, "header", "plan", "run", "grid", "zip", "exclude")


def to_toml(experiment: Experiment) -> str:
    """The text of an experiment; `from_toml(to_toml(e))` equals it. What it has at its default is left out."""
    lines = [f"name = {_text(experiment.name)}", f"source = {_text(experiment.source)}"]
    varied = _varied(experiment.runs)
    lines += _table("[header]", _changed(experiment.header, Header()))
    lines += _table("[plan]", _changed(experiment.plan, Plan()))
    lines += _table("[run]", {n: v for n, v in _changed(experiment.runs[0], Run()).items() if n not in varied})
    points = [tuple(getattr(run, name) for name in varied) for run in experiment.runs]
    columns = [list(dict.fromkeys(column)) for column in zip(*points, strict=True)]
    crossed = math.prod(map(len, columns)) == len(points) and list(itertools.product(*columns)) == points
    if not crossed:
        columns = [list(column) for column in zip(*points, strict=True)]
    lines += _table("[grid]" if crossed else "[[zip]]", dict(zip(varied, columns, strict=True)))
    return "\n".join(lines) + "\n"


def from_toml(text: str, name: str = "sweep", yes: bool = False) -> Experiment:
    """The experiment that a TOML text holds. Raises `ValueError` with what is wrong."""
    crowded = next((n for n, line in enumerate(text.splitlines(), 1) if line.count(".") > DOTS), None)
    if crowded is not None:
        raise ValueError(f"Line {crowded} of the file {name!r} has more than {DOTS} dots; names have a few at most.")
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"The file {name!r} is not valid TOML: {error}.") from None
    for key, value in document.items():
        if key not in _TABLES:
            raise settings.unknown("part of an experiment", key, _TABLES)
        kind = str if key in _TEXTS else list if key in ("zip", "exclude") else dict
        if not isinstance(value, kind) or kind is list and not all(isinstance(v, dict) for v in value):
            raise ValueError(f"{key!r} is written {_form(key)} in an experiment file, not {echoed(value)}.")
    header = document.get("header", {})
    for key in header:
        if key not in settings.fields(Header):
            raise settings.unknown("part of a header", key, settings.fields(Header))
        if not isinstance(header[key], str):
            raise ValueError(f"{key} of [header] is a text, not {echoed(header[key])}.")
    preset = document.get("preset")
    base, axes = _run_and_axes(document)
    usual = Usual(*starting(preset), preset, named(_in_place_of_tasks(document)))
    tasks = next((axis["task"] for axis in axes if "task" in axis), [base.get("task", usual.run.task)])
    plan = usual.planned(_values(document.get("plan", {}), Plan), tasks)
    points = [[dict(zip(axis, p, strict=True)) for p in zip(*axis.values(), strict=True)] for axis in axes]
    check_many(math.prod(map(len, points)) * plan.trials, yes)
    combinations = [{k: v for part in p for k, v in part.items()} for p in itertools.product(*points)]
    runs = _without(document.get("exclude", []), [usual.filled({**base, **point}) for point in combinations])
    origin = {"preset": preset, "suites": tuple(suite.name for suite in usual.suites)}
    return Experiment(document.get("name", name), runs, plan, document.get("source", ""), Header(**header), **origin)


def read(path: Path, yes: bool = False) -> Experiment:
    """The experiment in a `.toml` file."""
    return from_toml(path.read_text(encoding="utf-8", errors="replace"), path.stem, yes)


def _run_and_axes(document: dict) -> tuple[dict[str, Any], list[dict[str, list[Any]]]]:
    """What all runs share, and in what they differ: a list for each setting, those of one table in step."""
    base = _values(document.get("run", {}), Run)
    axes = [{"task": _listed("task", base.pop("task"))}] if settings.is_suite(base.get("task")) else []
    axes += [{name: _listed(name, values)} for name, values in document.get("grid", {}).items()]
    axes += [{n: _listed(n, v) for n, v in together.items()} for together in document.get("zip", [])]
    names = [name for axis in axes for name in axis]
    for name in names:
        if names.count(name) > 1 or name in base:
            raise ValueError(f"{name} is given twice, in [run], [grid] or [[zip]]; give it once.")
    for axis in axes:
        if len(lengths := {len(v) for v in axis.values()}) > 1:
            raise ValueError(f"{' and '.join(axis)} share a [[zip]], but have {sorted(lengths)} values; pair them.")
    return base, axes


def _in_place_of_tasks(document: dict) -> list[Any]:
    """What stands for tasks, suites not yet replaced by theirs."""
    tables = [document.get("run", {}), document.get("grid", {}), *document.get("zip", [])]
    tasks = [table["task"] for table in tables if "task" in table]
    return [value for task in tasks for value in (task if isinstance(task, list) else [task])]


def _without(excluded: list[dict[str, Any]], runs: list[Run]) -> tuple[Run, ...]:
    left_out = []
    for out in excluded:
        each_task = [_values(exclusion, Run) for exclusion in _each_task(out)]
        if not any(_is(run, exclusion) for run in runs for exclusion in each_task):
            text = " and ".join(f"{n}={v}" for n, v in out.items()) or "nothing"
            raise ValueError(f"[[exclude]] says {text}, but no run has that; write it as the runs do, or leave it out.")
        left_out += each_task
    return tuple(r for r in runs if not any(_is(r, out) for out in left_out))


def _is(run: Run, out: dict[str, Any]) -> bool:
    return bool(out) and all(getattr(run, name) == value for name, value in out.items())


def _each_task(out: dict[str, Any]) -> list[dict[str, Any]]:
    """What is left out, once for each task of a suite."""
    return [{**out, "task": task} for task in settings.expanded("task", [out["task"]])] if "task" in out else [out]


def _listed(name: str, values: Any) -> list[Any]:
    values = [values] if name == "task" and settings.is_suite(values) else values
    if not isinstance(values, list) or not values:
        raise ValueError(f"{name} is {echoed(values)}; [grid] and [[zip]] take a list of one or more values.")
    return [_values({name: v}, Run)[name] for v in settings.expanded(name, values)]


def _values(table: dict[str, Any], cls: type) -> dict[str, Any]:
    for name in table:
        if name not in cls.__dataclass_fields__:
            raise settings.unknown_setting(f"a {cls.__name__.lower()}", name, settings.fields(cls))
    return {name: settings.value(name, value) for name, value in table.items()}


def _varied(runs: tuple[Run, ...]) -> list[str]:
    """The settings in which runs differ, first the one that changes last."""
    changes = {n: [i for i, r in enumerate(runs) if getattr(r, n) != getattr(runs[0], n)] for n in settings.fields(Run)}
    return sorted((n for n, places in changes.items() if places), key=lambda n: -changes[n][0])


def _changed(thing: Any, default: Any) -> dict[str, Any]:
    pairs = ((f.name, getattr(thing, f.name), getattr(default, f.name)) for f in dataclasses.fields(thing))
    return {name: value for name, value, usual in pairs if value != usual}


def _table(head: str, values: dict[str, Any]) -> list[str]:
    return ["", head, *(f"{name} = {_text(value)}" for name, value in values.items())] if values else []


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_text(v) for v in value)}]"
    if value is None:
        return '"None"'
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def _form(key: str) -> str:
    if key in _TEXTS:
        return f'{key} = "..."'
    return f"[[{key}]]" if key in ("zip", "exclude") else f"[{key}]"
