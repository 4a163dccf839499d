"""The card of a suite: its tasks, and how each trains and is evaluated by default."""

from __future__ import annotations

from typing import Any

from posenc.lab.spec.run import SUITE, Plan, Run
from posenc.lab.spec.suites import named
from posenc.lab.sweep.plan import evaluated
from posenc.lab.train.training import resolve

COLUMNS = ("task", "model", "trained on", "tokens", "evaluated at")


def card(text: str) -> dict[str, Any]:
    """The card of a suite such as "suite:quick", as plain values."""
    (suite,) = named([text])
    return {
        "suite": suite.name,
        "use": f"task={SUITE}{suite.name}",
        "idea": suite.idea,
        "presets": list(suite.presets),
        "settings": {name: value for name, value in {**suite.run, **suite.plan}.items() if name != "model"},
        "tasks": [_row(run, Plan(**suite.plan)) for run in suite.runs],
    }


def as_text(content: dict[str, Any]) -> str:
    """A card in lines."""
    cells = [list(COLUMNS), *(_cells(row) for row in content["tasks"])]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rows = ("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells)
    facts = {
        "settings": ", ".join(f"{name}={_cell(value, ',')}" for name, value in content["settings"].items()) or "none",
        "published": " or ".join(f"--preset {name}" for name in content["presets"]) or "not as a whole",
    }
    parts = ["\n".join([content["use"], *([f"  {content['idea']}"] * bool(content["idea"]))])]
    parts.append("\n".join(f"  {row}" for row in rows))
    parts.append("\n".join(f"  {name:<12} {value}" for name, value in facts.items()))
    return "\n\n".join(parts)


def _row(run: Run, plan: Plan) -> dict[str, Any]:
    cell = resolve(run)
    sizes = {"trained on": list(dict.fromkeys([cell.run.shortest, run.length])), "tokens": cell.task.tokens(run.length)}
    return {"task": run.task, "model": run.model, **sizes, "evaluated at": list(evaluated(cell, plan))}


def _cells(row: dict[str, Any]) -> list[str]:
    return [" to ".join(map(str, row[name])) if name == "trained on" else _cell(row[name]) for name in COLUMNS]


def _cell(value: Any, between: str = ", ") -> str:
    return between.join(map(str, value)) if isinstance(value, list) else str(value)
