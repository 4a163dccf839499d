"""How many seeds solved a task, k of n, at each size. No jax."""

from __future__ import annotations

from posenc.lab.figures.captions import metric_named
from posenc.lab.figures.figures import shown
from posenc.lab.figures.panel_captions import coded, ending
from posenc.lab.figures.panels import Drawing
from posenc.lab.figures.rows import Grid, rows
from posenc.lab.results.learned import SOLVED
from posenc.lab.results.results import Results

COLUMNS = 2


def solved_seeds(results: Results) -> Drawing:
    """A row for each scheme, a column for each size, one part for each task and training range."""
    cells, words = shown(results), results.words
    names = words.lines(c.scheme for c in cells)
    parts, named = [], []
    for task, trained in sorted({(c.task, c.trained) for c in cells}):
        group = [c for c in cells if (c.task, c.trained) == (task, trained)]
        solved = {names[c.scheme]: {n: sum(v >= SOLVED for v in of) for n, of in c.values.items()} for c in group}
        n = {names[c.scheme]: {size: len(of) for size, of in c.values.items()} for c in group}
        shares = {row: {size: k / n[row][size] for size, k in of.items()} for row, of in solved.items()}
        texts = {row: {size: f"{k}/{n[row][size]}" for size, k in of.items()} for row, of in solved.items()}
        parts.append(Grid(words.title(task), words.unit(task), shares, texts, trained))
        named.append(f"{words.coded(task)} by {metric_named(group[0].metric)}")
    sentence = f"Seeds of which at least {SOLVED} is right, k of n, at each size: {'; '.join(named)}."
    order = [
        names[label] for label in dict.fromkeys(c.scheme for c in sorted(cells, key=lambda c: (c.family, c.scheme)))
    ]
    text = "\n".join([f"{sentence} {coded(results, names)}".strip(), *ending(results)])
    return Drawing(rows(order, parts, COLUMNS), text)
