"""Steps by hand as one HTML page: it loads nothing, all text is escaped, and a phone shows it well."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from posenc.lab.explain.steps import Matrix, Sheet, Step

STYLE = """
:root { color-scheme: light dark; --ink: #222; --soft: #666; --line: #ccc; --own: #fff3d6; --new: #b34700; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #eee; --soft: #aaa; --line: #555; --own: #4a3d1a; --new: #ffab70; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.2; } h2 { font-size: 1.1rem; margin: 2rem 0 .25rem; }
p, li { margin: .25rem 0; max-width: 40rem; } .soft, caption { color: var(--soft); } .by { color: var(--new); }
ul { padding-left: 1.2rem; font-size: .9rem; color: var(--soft); font-variant-numeric: tabular-nums; }
pre, .row { overflow-x: auto; } pre { font-size: .75rem; }
.row { display: flex; flex-wrap: wrap; gap: 1rem 2rem; align-items: flex-start; margin: .75rem 0; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .25rem; white-space: nowrap; }
th { font-weight: 500; color: var(--soft); padding: .2rem .5rem; text-align: right; }
td { border: 1px solid var(--line); padding: .2rem .5rem; text-align: right; min-width: 2.2rem; height: 1.9rem; }
tr.own td, tr.own th { background: var(--own); } tr.own th { color: var(--ink); font-weight: 700; }
td.new { color: var(--new); font-weight: 700; } td.box { min-width: 4rem; }
.without { opacity: .7; font-size: .85em; }
@media print { body { max-width: none; } section { break-inside: avoid; } .sheet + .sheet { break-before: page; } }
"""
# A browser that obeys this policy fetches nothing, whatever the page contains.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(sheets: Sequence[Sheet]) -> str:
    """A whole page of one or more sheets; each starts a new page in print."""
    title = escape(sheets[0].title)
    lines = ["<!doctype html>", '<html lang="en">', "<head>", '<meta charset="utf-8">']
    lines += ['<meta name="generator" content="posenc explain">']
    lines += ['<meta name="viewport" content="width=device-width, initial-scale=1">']
    lines += [f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">']
    lines += [f"<title>{title}</title>", f"<style>{STYLE}</style>", "</head>", "<body>"]
    return "\n".join([*lines, *map(_sheet, sheets), "</body>", "</html>", ""])


def _sheet(sheet: Sheet) -> str:
    kind = " (worksheet)" if sheet.blank else ""
    lines = ['<article class="sheet">', f"<h1>{escape(sheet.title)}{kind}</h1>", f"<p>{escape(sheet.about)}</p>"]
    if not sheet.blank and any(m.changed.any() for step in sheet.steps for m in step.matrices):
        lines.append('<p><span class="by">Bold numbers</span> are those that the scheme changed.</p>')
    lines += [f"<pre>{escape(sheet.path)}</pre>"] * bool(sheet.path)
    return "\n".join([*lines, *(_step(n, s, sheet.blank) for n, s in enumerate(sheet.steps, 1)), "</article>"])


def _step(n: int, step: Step, blank: bool) -> str:
    by = f' <span class="by">◄ {escape(step.by)}</span>' if step.by else ""
    lines = ["<section>", f"<h2>{n}. {escape(step.title)}{by}</h2>"]
    lines += [f'<p class="soft">{escape(step.note)}</p>'] if step.note else []
    if step.working and not blank:
        lines += ["<ul>", *(f"<li>{escape(line)}</li>" for line in step.working), "</ul>"]
    lines.append('<div class="row">')
    for matrix in step.matrices:
        lines.append(_table(matrix, blank and not matrix.given))
        if matrix.without is not None and matrix.changed.any() and not blank:
            before = Matrix("without", matrix.without, matrix.rows, matrix.columns)
            lines.append(_table(before, False, " without"))
    return "\n".join([*lines, "</div>", "</section>"])


def _table(matrix: Matrix, empty: bool, kind: str = "") -> str:
    lines = [f'<div class="scroll{kind}"><table>', f"<caption>{escape(matrix.label)}</caption>"]
    if matrix.columns:
        corner = "<th></th>" if matrix.rows else ""
        lines.append(f"<tr>{corner}{''.join(f'<th scope=col>{escape(c)}</th>' for c in matrix.columns)}</tr>")
    for i, (row, new) in enumerate(zip(matrix.cells(), matrix.changed, strict=True)):
        name = f"<th scope=row>{escape(matrix.rows[i])}</th>" if matrix.rows else ""
        cells = "".join(_cell(text, bool(changed), empty) for text, changed in zip(row, new, strict=True))
        own = ' class="own"' if i in matrix.marked else ""
        lines.append(f"<tr{own}>{name}{cells}</tr>")
    return "\n".join([*lines, "</table></div>"])


def _cell(text: str, changed: bool, empty: bool) -> str:
    if empty:
        return '<td class="box"></td>'
    return f'<td class="new">{escape(text)}</td>' if changed else f"<td>{escape(text)}</td>"
