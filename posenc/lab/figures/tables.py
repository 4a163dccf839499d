"""Results as text, CSV, Markdown, LaTeX, HTML or JSON. Tables hold no times, so equal results give equal bytes.

A row is a scheme on a task. It has the number of runs, its trials by outcome, its learning rate, then the median and
spread at each size. Tasks trained and measured at the same sizes share a block.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any

from posenc.lab.figures.captions import (
    METRICS,
    brackets,
    counts,
    exceptions,
    rate_choice_notes,
    rate_gaps,
    still_falling,
    ties,
    unlearned,
)
from posenc.lab.figures.exports import as_csv, latex, markdown
from posenc.lab.figures.fitting import Columns, narrow
from posenc.lab.figures.html_table import TableBlock, html_table, with_floors
from posenc.lab.figures.style import plain
from posenc.lab.metrics import LOSSES, merit
from posenc.lab.results.excess import effective_memories
from posenc.lab.results.learned import above_floor, hindrance
from posenc.lab.results.losses import falling
from posenc.lab.results.rate_gaps import by_rate
from posenc.lab.results.results import Results, grouped
from posenc.lab.results.statistics import HOLDS, Summary, TableCell, cells, summary
from posenc.lab.store.folder import FAILURES

OUTCOMES = ("done", "diverged", "failed")
HEAD = ("task", "scheme", "n", *OUTCOMES, "lr", "90% to")
ALL = Columns()
_WORDS: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


def table(results: Results, format: str = "text", columns: Columns = ALL) -> str:
    """All results of a run as one text, or some of its sizes. The formats are text, csv, md, latex, html and
    json."""
    writers: dict[str, Callable[[tuple[TableCell, ...], list[str], Columns], str]] = {
        **{"text": partial(_text, results), "csv": _csv, "md": _markdown, "latex": partial(_latex, results)},
        **{"html": partial(html, results), "json": _json},
    }
    if format not in writers:
        raise ValueError(f"No table format is called {format!r}; use {', '.join(writers)}.")
    table_cells = cells(results)
    lines = [*notes(table_cells, results, columns.brackets), *_left_out(table_cells, columns)]
    return writers[format](table_cells, lines, columns)


def reading(table_cells: tuple[TableCell, ...], spreads: bool = True) -> str:
    """How a table is read: the metric, the brackets and the marks."""
    metrics: dict[str, set[str]] = {}
    for cell in table_cells:
        if cell.metric:
            metrics.setdefault(METRICS.get(cell.metric, ("", cell.metric))[1], set()).add(plain(cell.task))
    shown = [k if len(metrics) == 1 else f"{k} ({', '.join(sorted(v))})" for k, v in sorted(metrics.items())]
    beside = f"Brackets: {brackets(table_cells)}" if spreads else "Spreads are left out"
    line = f"Median of runs; {'; '.join(shown) or 'no result yet'}. {beside}. * sizes trained on."
    if not metrics.keys() <= {METRICS[unit][1] for unit in LOSSES}:
        line += f" {HEAD[-1]}: the largest size up to which every median is at least {HOLDS:g}."
    return line


def notes(table_cells: tuple[TableCell, ...], results: Results, spreads: bool = True) -> list[str]:
    """Notes under a table: metric, brackets, choice of rates, outcomes, commits, and tasks that no scheme learned."""
    lines = [reading(table_cells, spreads)]
    if choices := rate_choice_notes(table_cells):
        tried = "all rates tried and all seeds" if any(c.tuning for c in table_cells) else "all rates tried"
        lines.append(f"n counts runs at lr, {'; '.join(choices)}. The other counts are over {tried}.")
    lines += [*exceptions(table_cells), *ties(table_cells), *rate_gaps(table_cells)]
    commits = results.provenance().get("commit", [])
    mixed = [f"These records are from {len(commits)} commits: {', '.join(map(plain, commits))}."]
    ended = counts(table_cells, results.unreadable)
    mixed = mixed if len(commits) > 1 else []
    return [
        *lines,
        *exact_losses(table_cells),
        *memories(results),
        ended,
        *mixed,
        *still_falling(results, table_cells),
        *unlearned(results, table_cells),
    ]


def exact_losses(table_cells: tuple[TableCell, ...]) -> list[str]:
    """The exact losses at each size, a line for each task where they are known."""
    lines = []
    for task, exact in {cell.task: cell.exact for cell in table_cells if cell.exact}.items():
        each = ", ".join(f"{n}: {bayes:.2f} of {unigram:.2f}" for n, (unigram, bayes) in sorted(exact.items()))
        lines.append(
            f"Least loss of {plain(task)}, exact (Bayes), of that of the law of one token: {each}. After + is what runs"
            " lose above the least."
        )
    return lines


def memories(results: Results) -> list[str]:
    """Return how many tokens an optimal predictor must see to lose as much as each scheme, if exact losses are known.
    The sizes are four times the longest trained size, and the longest of all."""
    lines = []
    for name, task in results.tasks().items():
        places = [(record.task.places or {}).items() for record in results.records if record.task.label == name]
        exact = {size for bins in places for size, of in bins if of.get("windows")}
        for size in sorted({4 * task.trained[1], max(exact, default=0)} & exact):
            memory = effective_memories(results.only(task=name), size)
            schemes = [f"{plain(label)} {of:.0f}" for (_, label), of in sorted(memory.items(), key=lambda m: -m[1])]
            if schemes:
                lines.append(
                    f"Effective context length on {plain(name)} at {size}, the tokens that an optimal predictor needs"
                    f" to lose as much beyond training: {', '.join(schemes)}."
                )
    return lines


def _left_out(table_cells: tuple[TableCell, ...], columns: Columns) -> list[str]:
    """The tasks that were measured at none of the sizes requested."""
    if columns.sizes is None:
        return []
    measured = {c.task for c in table_cells if columns.of(tuple(c.values))}
    without = [plain(task) for task in dict.fromkeys(c.task for c in table_cells) if task not in measured]
    sizes = ", ".join(map(str, columns.sizes))
    return [f"Left out, since not evaluated at {sizes}: {', '.join(without)}."] if without else []


def _blocks(table_cells: tuple[TableCell, ...], columns: Columns) -> list[TableBlock]:
    """A table of all tasks that were trained and measured at the same sizes; tasks that have none of the sizes shown
    are left out."""
    shapes: dict[tuple[str, tuple[int, int]], tuple] = {}
    for task, (low, high) in sorted({(c.task, c.trained) for c in table_cells}):
        sizes = sorted({n for c in table_cells if (c.task, c.trained) == (task, (low, high)) for n in c.values})
        shapes[task, (low, high)] = (tuple(sizes), tuple(n for n in sizes if low <= n <= high))
    blocks = []
    for measured, trained in dict.fromkeys(shapes.values()):
        if not (sizes := columns.of(measured)) and columns.sizes is not None:
            continue
        inside = [c for c in table_cells if shapes[c.task, c.trained] == (measured, trained)]
        header = [*HEAD, *(f"{n}*" if n in trained else str(n) for n in sizes)]
        groups = grouped((c.task, _row(c, sizes, columns.brackets)) for c in inside)
        blocks.append(TableBlock(header, list(groups.values())))
    return blocks


def _row(cell: TableCell, sizes: Sequence[int], brackets: bool) -> list[str]:
    sums = [summary(cell.values.get(n, ())) for n in sizes]
    rate = _rates(cell) or "–"
    holds = "–" if cell.holds_to is None else str(cell.holds_to)
    head = [plain(cell.task), plain(cell.scheme), *map(str, _counts(cell)), rate, holds]
    least = [cell.exact[n][1] if n in cell.exact else None for n in sizes]
    return [*head, *(_shown(s, cell.n, brackets, bayes) for s, bayes in zip(sums, least, strict=True))]


def _rates(cell: TableCell) -> str:
    """The learning rates at which runs are reported."""
    return ", ".join(f"{rate:g}" for rate in cell.reported)


def _counts(cell: TableCell) -> list[int]:
    failed = sum(cell.counts.get(k, 0) for k in FAILURES)
    return [cell.n, cell.counts.get("done", 0), cell.counts.get("diverged", 0), failed]


def _shown(s: Summary, n: int, brackets: bool, least: float | None) -> str:
    """Return median and spread, and its distance from the least loss if that is known. The number of runs is added if
    it differs from the row's."""
    if s.n == 0:
        return "–"
    spread = f" [{s.low:.2f}–{s.high:.2f}]" if s.n > 1 and brackets else ""
    above = "" if least is None else f" {s.median - least:+.2f}"
    return f"{s.median:.2f}{above}{spread}" + (f" n={s.n}" if s.n != n else "")


def _text(results: Results, table_cells: tuple[TableCell, ...], notes: list[str], columns: Columns) -> str:
    parts, blocks = [], [with_floors(results, block, len(HEAD)) for block in _blocks(table_cells, columns)]
    for block in blocks:
        widths = [max(map(len, column)) for column in zip(block.header, *block.rows, strict=True)]
        lines = [_aligned(block.header, widths), "  ".join("─" * w for w in widths)]
        for group in block.groups:
            for number, row in enumerate(group):  # a task is named once
                lines.append(_aligned(["" if number else row[0], *row[1:]], widths))
        parts.append("\n".join(lines))
    if (width := columns.width) is None:
        return "\n\n".join([*parts, "\n".join(notes)]) + "\n"
    if any(len(line) > width for part in parts for line in part.splitlines()):
        outcomes = _shows_outcomes(table_cells)
        parts = [part for block in blocks for part in _narrow(block, width, outcomes)]
    return "\n\n".join([*parts, "\n".join(textwrap.fill(note, width, **_WORDS) for note in notes)]) + "\n"


def _narrow(block: TableBlock, width: int, outcomes: bool) -> Iterator[str]:
    """A block as a table for each task, under its name, each broken into parts that fit."""
    for group in block.groups:
        name = textwrap.fill(group[0][0], width, **_WORDS)
        sizes = range(len(HEAD), len(block.header))
        yield f"{name}\n{narrow([block.header, *group], _head(outcomes), sizes, width)}"


def _shows_outcomes(table_cells: tuple[TableCell, ...]) -> bool:
    """Tell whether a trial is not done, so that counts by outcome add to n."""
    return any(sum(c.counts.values()) > c.counts.get("done", 0) for c in table_cells)


def _head(outcomes: bool) -> list[int]:
    """The columns before the sizes where the task stands above: counts of outcomes only if a trial is not done."""
    left_out = {"task", *(() if outcomes else OUTCOMES)}
    return [k for k, name in enumerate(HEAD) if name not in left_out]


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """Names to the left, numbers to the right, spreads to the left again, under one another."""
    cells = [c.rjust(w) if 2 <= k < len(HEAD) else c.ljust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))]
    return "  ".join(cells).rstrip()


def _markdown(table_cells: tuple[TableCell, ...], notes: list[str], columns: Columns) -> str:
    parts = []
    for block in _blocks(table_cells, columns):
        marks = ["---:" if 2 <= k < len(HEAD) else "---" for k in range(len(block.header))]
        rows = [block.header, *block.rows]
        escaped = [[markdown(cell) for cell in row] for row in rows]
        lines = [escaped[0], marks, *escaped[1:]]
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    return "\n\n".join([*parts, "\n".join(notes).replace("* sizes", "\\* sizes").replace("<", "\\<")]) + "\n"


def html(results: Results, table_cells: tuple[TableCell, ...], notes: list[str], columns: Columns = ALL) -> str:
    """The table as HTML, with the floors of each task and some notes."""
    head = _head(_shows_outcomes(table_cells))
    return html_table(results, _blocks(table_cells, columns), head, len(HEAD), notes) + "\n"


def _latex(results: Results, table_cells: tuple[TableCell, ...], notes: list[str], columns: Columns) -> str:
    """A booktabs tabular, which shrinks to the width of the column where it is wider.

    Bold is the best scheme, if its spread ends above the spreads of all others and its median above the highest floor,
    where enough was learned to call a scheme better.
    """
    bold, head, tables = _best(results, table_cells), _head(_shows_outcomes(table_cells)), []
    for block in _blocks(table_cells, columns):
        header, kept = block.header, [*head, *range(len(HEAD), len(block.header))]
        sides = "".join("l" if k == 1 or k >= len(HEAD) else "r" for k in kept)
        lines = [r"\begin{adjustbox}{max width=\columnwidth}", rf"\begin{{tabular}}{{{sides}}}", r"\toprule"]
        lines.append(_cells([header[k] for k in kept]))
        for group in block.groups:
            lines += [r"\midrule", rf"\multicolumn{{{len(kept)}}}{{l}}{{{latex(group[0][0])}}} \\"]
            for row in group:
                best = {n for n, k in enumerate(kept) if (*row[:2], header[k].rstrip("*")) in bold}
                lines.append(_cells([row[k] for k in kept], best))
        tables.append("\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{adjustbox}"]))
    comments = [r"The preamble needs \usepackage{booktabs,adjustbox}.", *notes]
    return "\n\n".join(["\n".join(f"% {line}" for line in comments), *tables]) + "\n"


def _best(results: Results, table_cells: tuple[TableCell, ...]) -> set[tuple[str, str, str]]:
    """Task, scheme and size of each best median whose spread lies above the spreads of all other schemes."""
    best, tasks, fell = set(), results.tasks(), falling(results, table_cells)
    for task in dict.fromkeys(c.task for c in table_cells):
        group = [c for c in table_cells if c.task == task]
        learned = not hindrance(group, fell)
        for n in sorted({n for c in group for n in c.values if learned or n not in c.beyond}):
            sums = {(c.scheme, c.trained): summary(c.values[n]) for c in group if c.values.get(n)}
            ends = {key: sorted(merit(group[0].metric, end) for end in (s.low, s.high)) for key, s in sums.items()}
            top = max(sums, key=lambda key: merit(group[0].metric, sums[key].median))
            others, examples = [key for key in sums if key != top], max(c.examples.get(n, 0) for c in group)
            clear = above_floor(tasks[task], [n], sums[top].median, examples) and sums[top].n > 1
            if clear and others and all(sums[key].n > 1 and ends[top][0] > ends[key][1] for key in others):
                best.add((plain(task), plain(top[0]), str(n)))
    return best


def _cells(row: Sequence[str], bold: Collection[int] = ()) -> str:
    return " & ".join(rf"\textbf{{{latex(cell)}}}" if k in bold else latex(cell) for k, cell in enumerate(row)) + r" \\"


def _csv(table_cells: tuple[TableCell, ...], notes: list[str], columns: Columns) -> str:
    """Write one header for all tasks. Each size has three columns of full precision: median, low, high. If an exact
    least loss is known, it and the median's distance from it are added."""
    sizes = columns.of(sorted({n for c in table_cells for n in c.values}))
    spreads = columns.brackets
    ends = ("", " low", " high") if spreads else ("",)
    exact = any(cell.exact for cell in table_cells)
    least = (" Bayes", " excess") if exact else ()
    header = [*HEAD, *["spread"] * spreads, *(f"{n}{what}" for n in sizes for what in (*ends, *least))]
    rows = []
    for cell in table_cells:
        sums = [summary(cell.values.get(n, ())) for n in sizes]
        kinds = sorted({s.kind for s in sums if s.n})
        numbers = []
        for n, s in zip(sizes, sums, strict=True):
            numbers += ((s.median, s.low, s.high) if s.n else (None, None, None))[: len(ends)]
            bayes = cell.exact[n][1] if s.n and n in cell.exact else None
            numbers += ((None, None) if bayes is None else (bayes, s.median - bayes)) if exact else ()
        rate = cell.reported[0] if len(cell.reported) == 1 else _rates(cell)
        head = [cell.task, cell.scheme, *_counts(cell), rate, cell.holds_to, *["; ".join(kinds)] * spreads]
        rows.append(dict(zip(header, [*head, *numbers], strict=True)))
    return as_csv(rows, header)


def _at_rate(cell: TableCell, rate: float, sizes: Sequence[int]) -> dict[str, Any]:
    """Size to the runs at one rate."""
    sums = {n: by_rate(cell.runs[n], [rate]).get(rate) for n in sizes if n in cell.runs}
    return {str(n): {"n": s.n, "median": s.median, "low": s.low, "high": s.high} for n, s in sums.items() if s}


def _json(table_cells: tuple[TableCell, ...], notes: list[str], columns: Columns) -> str:
    """One object per row, the values of all runs with it."""
    rows = []
    for cell in table_cells:
        row = dict(zip(HEAD, [cell.task, cell.scheme, *_counts(cell), cell.rate, cell.holds_to], strict=True))
        row |= {"family": cell.family, "metric": cell.metric, "trained": list(cell.trained), "outcomes": cell.counts}
        row |= {"rates": list(cell.rates), "tuning": list(cell.tuning)}
        row |= {"ties": list(cell.ties), "reported": list(cell.reported)}
        sizes = columns.of(tuple(cell.values))
        row |= {"exact": {str(n): dict(zip(("unigram", "bayes"), cell.exact[n], strict=True)) for n in cell.exact}}
        row["by_rate"] = {str(rate): _at_rate(cell, rate, sizes) for rate in cell.reported}
        sums = {n: summary(cell.values[n]) for n in sizes}
        row["sizes"] = {
            str(n): {"n": s.n, "median": s.median, "mean": s.mean, "low": s.low, "high": s.high, "spread": s.kind}
            | {"values": list(cell.values[n])}
            for n, s in sums.items()
        }
        rows.append(row)
    return json.dumps({"rows": rows, "notes": notes}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
