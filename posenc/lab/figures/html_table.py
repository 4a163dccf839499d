"""The table of results as HTML: medians over their spreads, and the floors of each task below its schemes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from posenc.lab.figures.captions import EXACT, FLOORS
from posenc.lab.figures.floor_lines import NAMES
from posenc.lab.figures.style import plain, safe
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
    """The tables of some blocks, each in a part of the page that scrolls by itself, and the notes as paragraphs.

    `head` are the columns before the sizes that are shown, the first of them the scheme, and `fixed` how many there are
    before the sizes. Whatever results hold is escaped.
    """
    names: dict[str, None] = {}
    tables = [_table(results, block, head, fixed, names) for block in blocks]
    each = [f"{NAMES[name]} ({words})" for name, words in (FLOORS | EXACT).items() if name in names]
    what = [f"Floors, what guesses get that ignore the tokens or their order: {', '.join(each)}."] if each else []
    return "\n".join([*tables, *(f"<p>{safe(note)}</p>" for note in [*what, *notes])])


def _table(results: Results, block: TableBlock, head: Sequence[int], fixed: int, names: dict[str, None]) -> str:
    """One block. The floors that it shows are added to `names`."""
    header, tasks = block.header, results.tasks()
    columns, sizes = [*head, *range(fixed, len(header))], header[fixed:]
    top = "".join(f'<th scope="col">{safe(header[k])}</th>' for k in columns)
    bodies = []
    for group in block.groups:
        task = group[0][0]
        name = safe(results.words.coded(task))
        title = f'<tr class="task"><th scope="rowgroup" colspan="{len(columns)}">{name}</th></tr>'
        lines = [_row([row[k] for k in columns], len(head)) for row in group]
        task_floors = floors(tasks[task]) if task in tasks else {}
        lines += _floor_rows(task_floors, sizes, len(head), names)
        bodies.append(f"<tbody>{title}{''.join(lines)}</tbody>")
    return wide(f"<table><thead><tr>{top}</tr></thead>{''.join(bodies)}</table>")


def with_floors(results: Results, block: TableBlock, fixed: int) -> TableBlock:
    """A block with the best floor of each task below its schemes, as a table in text has it."""
    tasks, sizes = {plain(name): task for name, task in results.tasks().items()}, block.header[fixed:]
    groups = []
    for group in block.groups:
        task = tasks.get(group[0][0])
        at = [best_floor(task, [int(size.rstrip("*"))]) if task else None for size in sizes]
        values = ["–" if floor is None else f"{floor[1]:.2f}" for floor in at]
        groups.append([*group, [group[0][0], "floor", *[""] * (fixed - 2), *values]] if any(at) else group)
    return TableBlock(block.header, groups)


def wide(body: str) -> str:
    """What may be wider than a small screen scrolls by itself, so that the page does not."""
    return f'<div class="wide" tabindex="0">{body}</div>'


def _row(cells: Sequence[str], head: int) -> str:
    """A scheme: its name, the columns before the sizes, and each median over its spread."""
    label, *rest = cells
    texts = [safe(cell) for cell in rest[: head - 1]]
    for cell in rest[head - 1 :]:
        median, opened, spread = cell.partition(" [")
        texts.append(safe(median) + (f"<small>[{safe(spread)}</small>" if opened else ""))
    return f'<tr><th scope="row">{safe(label)}</th>{"".join(f"<td>{text}</td>" for text in texts)}</tr>'


def _floor_rows(
    task_floors: Mapping[int, Mapping[str, float]], sizes: Sequence[str], head: int, names: dict[str, None]
) -> list[str]:
    """A row for each floor of a task that is known at some of the sizes of a table."""
    at, lines = [task_floors.get(int(size.rstrip("*")), {}) for size in sizes], []
    for name in NAMES:
        if any(name in values for values in at):
            names[name] = None
            cells = "".join(f"<td>{values[name]:.2f}</td>" if name in values else "<td>–</td>" for values in at)
            label = f'<th scope="row" colspan="{head}">floor: {NAMES[name]}</th>'
            lines.append(f'<tr class="floor">{label}{cells}</tr>')
    return lines
