"""The card of a suite: its tasks, and how each trains and is evaluated by default."""

from __future__ import annotations

from typing import Any

from posenc.catalog.card import Card, Fact
from posenc.lab.figures.style import aligned
from posenc.lab.run.plan import evaluated
from posenc.lab.spec.run import SUITE, Plan, Run
from posenc.lab.spec.suites import named
from posenc.lab.train.training import resolve

COLUMNS = ("task", "model", "trained on", "tokens", "evaluated at")


def card(text: str) -> Card:
    """The card of a suite such as "suite:quick"."""
    (suite,) = named([text])
    values = {name: value for name, value in {**suite.run, **suite.plan}.items() if name != "model"}
    rows, presets = [_row(run, Plan(**suite.plan)) for run in suite.runs], list(suite.presets)
    settings = ", ".join(f"{name}={_cell(value, ',')}" for name, value in values.items()) or "none"
    facts = (
        Fact("use", use := f"task={SUITE}{suite.name}", ""),
        Fact("tasks", rows, "\n".join(aligned([COLUMNS, *map(_cells, rows)], str.ljust)), "", is_block=True),
        Fact("settings", values, settings),
        Fact("presets", presets, " or ".join(f"--preset {name}" for name in presets) or "not as a whole", "published"),
    )
    return Card("suite", suite.name, suite.idea, facts=facts, title=use)


def _row(run: Run, plan: Plan) -> dict[str, Any]:
    cell = resolve(run)
    sizes = {"trained on": list(dict.fromkeys([cell.run.shortest, run.length])), "tokens": cell.task.tokens(run.length)}
    return {"task": run.task, "model": run.model, **sizes, "evaluated at": list(evaluated(cell, plan))}


def _cells(row: dict[str, Any]) -> list[str]:
    return [" to ".join(map(str, row[name])) if name == "trained on" else _cell(row[name]) for name in COLUMNS]


def _cell(value: Any, between: str = ", ") -> str:
    return between.join(map(str, value)) if isinstance(value, list) else str(value)
