"""Experiments as TOML, which `--save` writes and `posenc sweep FILE` reads: `[run]` holds for all of its `runs`.

    name = "first"
    runs = [
        {task = "copy", scheme = "rope"},
        {task = "even_pairs", scheme = "alibi"},
    ]
    [plan]
    seeds = 5
    [run]
    width = 64

A suite stands for its tasks: with `task = "suite:probes"` they train by its defaults, unless the file says otherwise.
With `preset = "ruoss"` at the top, settings that are not given are as published.
"""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from posenc.lab.spec import settings
from posenc.lab.spec.experiment import Experiment, Header, check_many, starting
from posenc.lab.spec.run import Plan, Run
from posenc.lab.spec.suites import Usual, named
from posenc.language.echo import echoed

DOTS = 256
"""Limit of dots in one line: a name of thousands of parts takes minutes to read."""
_TEXTS = ("name", "source", "preset")
_TABLES = (*_TEXTS, "header", "plan", "run", "runs")


def to_toml(experiment: Experiment) -> str:
    """Return the text of an experiment; `from_toml(to_toml(e))` equals it. Defaults are left out."""
    runs = experiment.runs
    varied = [n for n in settings.fields(Run) if any(getattr(run, n) != getattr(runs[0], n) for run in runs)]
    lines = [f"name = {_text(experiment.name)}", f"source = {_text(experiment.source)}"]
    if varied:
        rows = (", ".join(f"{name} = {_text(getattr(run, name))}" for name in varied) for run in runs)
        lines += ["runs = [", *(f"    {{{row}}}," for row in rows), "]"]
    lines += _table("[header]", _changed(experiment.header, Header()))
    lines += _table("[plan]", _changed(experiment.plan, Plan()))
    lines += _table("[run]", {n: v for n, v in _changed(runs[0], Run()).items() if n not in varied})
    return "\n".join(lines) + "\n"


def from_toml(text: str, name: str = "sweep", yes: bool = False) -> Experiment:
    """The experiment that a TOML text holds. Raises `ValueError` with what is wrong."""
    document = _parsed(text, name)
    header = document.get("header", {})
    for key in header:
        if key not in settings.fields(Header):
            raise settings.unknown("part of a header", key, settings.fields(Header))
        if not isinstance(header[key], str):
            raise ValueError(f"{key} of [header] is a text, not {echoed(header[key])}.")
    preset, runs = document.get("preset"), _fields_of_runs(document)
    usual = Usual(*starting(preset), preset, named(fields["task"] for fields in runs if "task" in fields))
    runs = [each_task for fields in runs for each_task in _each_task(fields)]
    tasks = (fields.get("task", usual.run.task) for fields in runs)
    plan = usual.planned(_values(document.get("plan", {}), Plan), tasks)
    check_many(len(runs) * plan.trials, yes)
    origin = {"preset": preset, "suites": tuple(suite.name for suite in usual.suites)}
    made = tuple(usual.filled(fields) for fields in runs)
    return Experiment(document.get("name", name), made, plan, document.get("source", ""), Header(**header), **origin)


def read(path: Path, yes: bool = False) -> Experiment:
    """The experiment in a `.toml` file."""
    return from_toml(path.read_text(encoding="utf-8", errors="replace"), path.stem, yes)


def _parsed(text: str, name: str) -> dict[str, Any]:
    """Return the content of a text, each part of the kind that it has in an experiment file."""
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
        kind = str if key in _TEXTS else list if key == "runs" else dict
        if not isinstance(value, kind) or kind is list and not all(isinstance(v, dict) for v in value):
            raise ValueError(f"{key!r} is written {_form(key)} in an experiment file, not {echoed(value)}.")
    return document


def _fields_of_runs(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the settings that the file gives each run, with a suite for its tasks."""
    shared = _values(document.get("run", {}), Run)
    rows = [_values(row, Run) for row in document.get("runs", [{}])]
    if not rows:
        raise ValueError("The file has no runs; give it one or more, or leave the list out for one run.")
    if double := [name for row in rows for name in row if name in shared]:
        raise ValueError(f"{double[0]} is given twice, in [run] and in runs; give it once.")
    return [{**shared, **row} for row in rows]


def _each_task(fields: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The settings of a run, or those of one for each task of a suite."""
    return (
        [{**fields, "task": task} for task in settings.expanded("task", [fields["task"]])]
        if "task" in fields
        else [fields]
    )


def _values(table: dict[str, Any], cls: type) -> dict[str, Any]:
    for name in table:
        if name not in cls.__dataclass_fields__:
            raise settings.unknown_setting(f"a {cls.__name__.lower()}", name, settings.fields(cls))
    return {name: settings.value(name, value) for name, value in table.items()}


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
    return f'{key} = "..."' if key in _TEXTS else "runs = [{...}, ...]" if key == "runs" else f"[{key}]"
