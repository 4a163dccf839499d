"""Results as text, CSV, Markdown, LaTeX or JSON. Tables hold no times, so equal results give equal bytes.

A row is a scheme on a task: the number of runs, its trials by outcome, its learning rate, then the median and spread
at each size. Tasks trained and measured at the same sizes share a block.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from posenc.lab.figures.captions import brackets, chosen, counts, exceptions, rate_gaps, still_falling, ties, unlearned
from posenc.lab.figures.files import harmless
from posenc.lab.figures.style import plain
from posenc.lab.results.learned import above_floor, hindrance
from posenc.lab.results.losses import falling
from posenc.lab.results.rate_gaps import by_rate
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import HOLDS, Summary, TableCell, cells, summary
from posenc.lab.store.folder import FAILURES
from posenc.lab.store.records import NATS, merit

HEAD = ("task", "scheme", "n", "done", "diverged", "failed", "lr", "90% to")
_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {c: f"\\{c}" for c in "&%$#_{}"}


def table(results: Results, format: str = "text") -> str:
    """All results of a run as one text. The formats are text, csv, md, latex and json."""
    writers: dict[str, Callable[[tuple[TableCell, ...], list[str]], str]] = {
        **{"text": _text, "csv": _csv, "md": _markdown, "latex": partial(_latex, results), "json": _json}
    }
    if format not in writers:
        raise ValueError(f"No table format is called {format!r}; use {', '.join(writers)}.")
    found = cells(results)
    return writers[format](found, notes(found, results))


def notes(found: tuple[TableCell, ...], results: Results) -> list[str]:
    """Notes under a table: metric, brackets, choice of rates, outcomes, commits, and tasks that no scheme learned."""
    named = {"token": "token accuracy", "accuracy": "accuracy", "error": "accuracy", "exact": "whole answers right"}
    named |= {"last": "accuracy at the last token", "beyond": "accuracy at places beyond training"}
    named |= {NATS: "mean loss of answer tokens in nats, less is better"}
    metrics: dict[str, set[str]] = {}
    for cell in found:
        if cell.metric:
            metrics.setdefault(named.get(cell.metric, cell.metric), set()).add(plain(cell.task))
    shown = [k if len(metrics) == 1 else f"{k} ({', '.join(sorted(v))})" for k, v in sorted(metrics.items())]
    lines = [f"Median of runs; {'; '.join(shown) or 'no result yet'}. Brackets: {brackets(found)}. * sizes trained on."]
    if metrics.keys() != {named[NATS]}:
        lines[0] += f" {HEAD[-1]}: the largest size up to which every median is at least {HOLDS:g}."
    if how := chosen(found):
        tried = "all rates tried and all seeds" if any(c.tuning for c in found) else "all rates tried"
        lines.append(f"n counts runs at lr, {'; '.join(how)}. The other counts are over {tried}.")
    lines += [*exceptions(found), *ties(found), *rate_gaps(found)]
    commits = results.provenance().get("commit", [])
    mixed = [f"These records are from {len(commits)} commits: {', '.join(map(plain, commits))}."]
    ended = counts(found, results.unreadable)
    mixed = mixed if len(commits) > 1 else []
    return [*lines, ended, *mixed, *still_falling(results), *unlearned(results, found)]


def _blocks(found: tuple[TableCell, ...]) -> list[tuple[list[str], list[list[str]], list[int]]]:
    """Header, rows and the number of rows of each task, for all tasks trained and measured at the same sizes."""
    shapes: dict[tuple[str, tuple[int, int]], tuple] = {}
    for task, (low, high) in sorted({(c.task, c.trained) for c in found}):
        sizes = sorted({n for c in found if (c.task, c.trained) == (task, (low, high)) for n in c.values})
        shapes[task, (low, high)] = (tuple(sizes), tuple(n for n in sizes if low <= n <= high))
    blocks = []
    for sizes, trained in dict.fromkeys(shapes.values()):
        inside = [c for c in found if shapes[c.task, c.trained] == (sizes, trained)]
        header = [*HEAD, *(f"{n}*" if n in trained else str(n) for n in sizes)]
        tasks = dict.fromkeys(c.task for c in inside)
        blocks.append((header, [_row(c, sizes) for c in inside], [sum(c.task == t for c in inside) for t in tasks]))
    return blocks


def _row(cell: TableCell, sizes: Sequence[int]) -> list[str]:
    sums = [summary(cell.values.get(n, ())) for n in sizes]
    rate = _rates(cell) or "–"
    holds = "–" if cell.holds_to is None else str(cell.holds_to)
    head = [plain(cell.task), plain(cell.scheme), *map(str, _counts(cell)), rate, holds]
    return [*head, *(_shown(s, cell.n) for s in sums)]


def _rates(cell: TableCell) -> str:
    """The learning rates at which runs are reported."""
    return ", ".join(f"{rate:g}" for rate in cell.reported)


def _counts(cell: TableCell) -> list[int]:
    failed = sum(cell.counts.get(k, 0) for k in FAILURES)
    return [cell.n, cell.counts.get("done", 0), cell.counts.get("diverged", 0), failed]


def _shown(s: Summary, n: int) -> str:
    """Median and spread; and the number of runs, if it differs from the row's."""
    if s.n == 0:
        return "–"
    spread = f" [{s.low:.2f}–{s.high:.2f}]" if s.n > 1 else ""
    return f"{s.median:.2f}{spread}" + (f" n={s.n}" if s.n != n else "")


def _text(found: tuple[TableCell, ...], notes: list[str]) -> str:
    parts = []
    for header, rows, tasks in _blocks(found):
        widths = [max(len(r[k]) for r in [header, *rows]) for k in range(len(header))]
        rule = "  ".join("─" * w for w in widths)
        lines, start = [_aligned(header, widths).rstrip(), rule], 0
        for many in tasks:
            group = rows[start : start + many]
            for number, row in enumerate(group):  # a task is named once
                lines.append(_aligned(["" if number else row[0], *row[1:]], widths).rstrip())
            start += many
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, "\n".join(notes)]) + "\n"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """Names to the left, numbers to the right, spreads to the left again, under one another."""
    cells = [c.rjust(w) if 2 <= k < len(HEAD) else c.ljust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))]
    return "  ".join(cells)


def _markdown(found: tuple[TableCell, ...], notes: list[str]) -> str:
    parts = []
    for header, rows, _ in _blocks(found):
        marks = ["---:" if 2 <= k < len(HEAD) else "---" for k in range(len(header))]
        escaped = [[c.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_") for c in r] for r in [header, *rows]]
        lines = [escaped[0], marks, *escaped[1:]]
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    return "\n\n".join([*parts, "\n".join(notes).replace("* sizes", "\\* sizes")]) + "\n"


def _latex(results: Results, found: tuple[TableCell, ...], notes: list[str]) -> str:
    """A booktabs tabular; put `\\usepackage{booktabs}` in the preamble.

    Counts of outcomes are shown only if a trial is not done. Bold is the best scheme, if its spread ends above the
    spreads of all others and its median above the highest floor, where enough was learned to call a scheme better.
    """
    parts = []
    counted = any(sum(c.counts.values()) > c.counts.get("done", 0) for c in found)
    head = [k for k, name in enumerate(HEAD) if counted or name not in ("done", "diverged", "failed")]
    bold = _best(results, found)
    for header, rows, tasks in _blocks(found):
        kept = [*head, *range(len(HEAD), len(header))]
        lines = [rf"\begin{{tabular}}{{ll{'r' * (len(head) - 2)}{'l' * (len(header) - len(HEAD))}}}", r"\toprule"]
        lines += [_cells([header[k] for k in kept]), r"\midrule"]
        start = 0
        for many in tasks:
            for number, row in enumerate(rows[start : start + many]):  # a task is named once
                best = {k for k in kept if k >= len(HEAD) and (*row[:2], header[k].rstrip("*")) in bold}
                cells = ["" if number and not k else row[k] for k in kept]
                lines.append(_cells(cells, {kept.index(k) for k in best}))
            lines.append(r"\midrule")
            start += many
        parts.append("\n".join([*lines[:-1], r"\bottomrule", r"\end{tabular}"]))
    return "\n\n".join([*parts, "\n".join(f"% {line}" for line in notes)]) + "\n"


def _best(results: Results, found: tuple[TableCell, ...]) -> set[tuple[str, str, str]]:
    """Task, scheme and size of each best median whose spread lies above the spreads of all other schemes."""
    best, tasks, fell = set(), results.tasks(), falling(results)
    for task in dict.fromkeys(c.task for c in found):
        group = [c for c in found if c.task == task]
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
    escaped = ["".join(_LATEX.get(c, c) for c in cell).replace("–", "--") for cell in row]
    return " & ".join(rf"\textbf{{{cell}}}" if k in bold else cell for k, cell in enumerate(escaped)) + r" \\"


def _csv(found: tuple[TableCell, ...], notes: list[str]) -> str:
    """One header for all tasks; per size three columns of full precision: median, low, high."""
    sizes = sorted({n for c in found for n in c.values})
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*HEAD, "spread", *(f"{n}{what}" for n in sizes for what in ("", " low", " high"))])
    for cell in found:
        sums = [summary(cell.values.get(n, ())) for n in sizes]
        kinds = sorted({s.kind for s in sums if s.n})
        numbers = [v for s in sums for v in ((s.median, s.low, s.high) if s.n else ("", "", ""))]
        rate = cell.reported[0] if len(cell.reported) == 1 else _rates(cell)
        holds = "" if cell.holds_to is None else cell.holds_to
        head = [harmless(cell.task), harmless(cell.scheme), *_counts(cell), rate, holds, "; ".join(kinds)]
        writer.writerow([*head, *numbers])
    return buffer.getvalue()


def _at_rate(cell: TableCell, rate: float) -> dict[str, Any]:
    """Size to the runs at one rate."""
    sums = {n: by_rate(runs, [rate]).get(rate) for n, runs in cell.runs.items()}
    return {str(n): {"n": s.n, "median": s.median, "low": s.low, "high": s.high} for n, s in sums.items() if s}


def _json(found: tuple[TableCell, ...], notes: list[str]) -> str:
    """One object per row, the values of all runs with it."""
    rows = []
    for cell in found:
        about = dict(zip(HEAD, [cell.task, cell.scheme, *_counts(cell), cell.rate, cell.holds_to], strict=True))
        about |= {"family": cell.family, "metric": cell.metric, "trained": list(cell.trained), "outcomes": cell.counts}
        about |= {"rates": list(cell.rates), "tuning": list(cell.tuning)}
        about |= {"ties": list(cell.ties), "reported": list(cell.reported)}
        about["by_rate"] = {str(rate): _at_rate(cell, rate) for rate in cell.reported}
        sums = {n: summary(v) for n, v in cell.values.items()}
        about["sizes"] = {
            str(n): {"n": s.n, "median": s.median, "mean": s.mean, "low": s.low, "high": s.high, "spread": s.kind}
            | {"values": list(cell.values[n])}
            for n, s in sums.items()
        }
        rows.append(about)
    return json.dumps({"rows": rows, "notes": notes}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
