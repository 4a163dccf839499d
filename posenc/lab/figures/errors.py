"""Error rate against size on a log axis, for schemes that are nearly always right. No jax.

A log axis has no zero, so runs without an error are drawn below the line of one error in all scored answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from posenc.lab import metrics
from posenc.lab.figures.across import panels
from posenc.lab.figures.figures import shown, size_panel
from posenc.lab.figures.floor_lines import ONE
from posenc.lab.figures.panels import Drawing, Panel
from posenc.lab.figures.style import plain
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import TableCell, by_range

QUARTER = 0.25
"""The height of no error, as a share of the rate of one error, so that a median can lie between the two."""


def error_curve(results: Results) -> Drawing:
    """Draw the error rate against size, one panel per task and training range, one line per scheme."""
    drawn, names = [], results.words.lines(cell.scheme for cell in shown(results))
    sentences = ["Error rates are on a log axis; runs without an error stand at a quarter of the rate of one error."]
    for (task, _), group in sorted(by_range(shown(results)).items()):
        totals = scored(results, task)
        if not any(totals.values()):
            raise ValueError(
                f"Every trial of {task!r} diverged, so there is no error rate to draw; use --figure length."
            )
        drawn.append(_panel(results, group, totals))
        sentences.append(_sentence(group, totals, names))
    return panels(results, drawn, more=" ".join(sentences))


def scored(results: Results, task: str) -> dict[int, int]:
    """Return size to the number of answers scored in the test set, which all runs share."""
    totals: dict[int, int] = {}
    for record in results.records:
        for trial in record.trials if record.task.label == task else ():
            for n, counts in trial.evaluations.items():
                totals[n] = max(totals.get(n, 0), metrics.right_and_total(counts, record.task.metric)[1])
    return totals


def wrong(cell: TableCell, totals: Mapping[int, int], size: int) -> tuple[int, int]:
    """Return the wrong answers of all runs together at a size, and the number scored."""
    return sum(round((1 - v) * totals[size]) for v in cell.values[size]), totals[size] * len(cell.values[size])


def _panel(results: Results, group: list[TableCell], totals: Mapping[int, int]) -> Panel:
    at = [n for n in sorted({n for cell in group for n in cell.values}) if totals.get(n)]
    least = QUARTER / max(totals[n] for n in at)
    points = {c.scheme: {n: [max(1 - v, least) for v in c.values[n]] for n in at if n in c.values} for c in group}
    shares = size_panel(results, results.tasks()[group[0].task], group, at)
    guesses = shares.floors or {}
    lines = {n: {name: 1 - share for name, share in guesses.get(n, {}).items()} | {ONE: 1 / totals[n]} for n in at}
    return replace(shares, points=points, up=shares.up.replace("accuracy", "error rate"), floors=lines, falling=True)


def _sentence(group: list[TableCell], totals: Mapping[int, int], names: Mapping[str, str]) -> str:
    """The errors of each scheme at the largest size trained on."""
    inside, measured = [n for c in group for n in c.inside], [n for c in group for n in c.values]
    n = max(inside, default=min(measured))
    here = sorted((c for c in group if n in c.values), key=lambda c: (wrong(c, totals, n), c.scheme))
    counts = ["{} {:,} of {:,}".format(plain(names[c.scheme]), *wrong(c, totals, n)) for c in here]
    return f"Errors of all runs together at {n}: {', '.join(counts)}."
