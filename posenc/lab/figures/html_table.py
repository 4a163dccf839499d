"""The table of results as HTML: medians over their spreads, and the floors of each task below its schemes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from posenc.lab.figures.captions import EXACT, FLOORS
from posenc.lab.figures.floor_lines import NAMES
from posenc.lab.figures.pages import filled
from posenc.lab.figures.style import plain
from posenc.lab.results.floors import best_floor, floors
from posenc.lab.results.results import Results


class TableBlock(NamedTuple):
    """A table of the tasks that were trained and measured at the same sizes."""

    header: list[str]
    groups: list[list[list[str]]]
    """The rows of each task."""

    @property
    def rows(self) -> list[list[str]]:
        """The rows of all tasks."""
        return [row for group in self.groups for row in group]


def html_table(results: Results, blocks: list[TableBlock], head: list[int], fixed: int, notes: Sequence[str]) -> str:
    """Write blocks as tables that scroll by themselves, with the floors of each task, and the notes as paragraphs.

    `head` are the columns before the sizes that are shown, the first of them the scheme, and `fixed` counts all columns
    before the sizes.
    """
    made = [_table(results, block, head, fixed) for block in blocks]
    shown = {name for block in made for task in block["tasks"] for name, _ in task["floors"]}
    each = [f"{NAMES[name]} ({words})" for name, words in (FLOORS | EXACT).items() if NAMES[name] in shown]
    what = [f"Baselines are guesses that ignore the tokens or their order: {', '.join(each)}."] if each else []
    return filled("table.html", blocks=made, notes=[*what, *notes])


def _table(results: Results, block: TableBlock, head: Sequence[int], fixed: int) -> dict[str, Any]:
    header, records, tasks = block.header, results.tasks(), []
    sizes = [int(size.rstrip("*")) for size in header[fixed:]]
    columns = [*head, *range(fixed, len(header))]
    for group in block.groups:
        at = floors(records[group[0][0]]) if group[0][0] in records else {}
        rows = [(row[columns[0]], [row[k] for k in columns[1:]]) for row in group]
        low = [
            (NAMES[name], [f"{at[n][name]:.2f}" if name in at.get(n, ()) else "–" for n in sizes])
            for name in NAMES
            if any(name in at.get(n, ()) for n in sizes)
        ]
        tasks.append({"name": results.words.coded(group[0][0]), "rows": rows, "floors": low})
    return {"header": [header[k] for k in columns], "head": len(head), "tasks": tasks}


def with_floors(results: Results, block: TableBlock, fixed: int) -> TableBlock:
    """A block with the best floor of each task below its schemes, as a table in text has it."""
    tasks, sizes = {plain(name): task for name, task in results.tasks().items()}, block.header[fixed:]
    groups = []
    for group in block.groups:
        task = tasks.get(group[0][0])
        at = [best_floor(task, [int(size.rstrip("*"))]) if task else None for size in sizes]
        values = ["–" if floor is None else f"{floor[1]:.2f}" for floor in at]
        groups.append([*group, [group[0][0], "baseline", *[""] * (fixed - 2), *values]] if any(at) else group)
    return TableBlock(block.header, groups)
