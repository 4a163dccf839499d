"""Error rate against size on a log axis, for schemes that are nearly always right.

A log axis has no zero, so runs without an error are on a separate line, below the line of one error in all scored
answers, with the number of scored answers beside it. No jax.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from posenc.lab.figures import style
from posenc.lab.figures.captions import numbers, sizes, spreads
from posenc.lab.figures.figures import shown
from posenc.lab.figures.floor_lines import Name, floor_lines, settle
from posenc.lab.figures.panel_captions import axes_named, ending, floors_named
from posenc.lab.figures.panels import Drawing, line, places, shape, sizes_trained, spaced
from posenc.lab.results.results import Results, floors
from posenc.lab.results.statistics import TableCell
from posenc.lab.store import records

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UP, ALONG = "error rate", "size"
TEXT = 0.13
"""The share of the axis that a count takes."""
BELOW = 4
"""Zero errors are drawn at the rate of one error divided by this, so that a median can lie between the two."""


def error_curve(results: Results) -> Drawing:
    """Error rate against size, one panel per task and training range, one line per scheme."""
    style.need_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    found, tasks = shown(results), results.tasks()
    names = sorted({(c.task, c.trained) for c in found})
    looks = style.looks((c.scheme, c.family) for c in found)
    captions, named = [], []
    with matplotlib.rc_context(style.RC):
        rows, columns = shape(len(names))
        wide = 3.4 * columns + (2.4 if columns == 1 else 0.4)
        figure = Figure(figsize=(wide, 3.0 * rows + 0.22 * style.lines(looks, wide) + 0.2), layout="constrained")
        for axes, name in zip(places(figure, len(names)), names, strict=True):
            group = sorted((c for c in found if (c.task, c.trained) == name), key=lambda c: list(looks).index(c.scheme))
            totals, known = scored(results, name[0]), _turned(floors(tasks[name[0]]))
            if not any(totals.values()):
                raise ValueError(
                    f"Every trial of {name[0]!r} diverged, so there is no error rate to draw; use --figure length."
                )
            named += _panel(axes, group, totals, known, looks)
            captions.append(_caption(group, totals, known))
        style.legend(figure, looks)
        settle(figure, named)
    spread = spreads(values for cell in found for values in cell.values.values())
    marks = (
        f"Points are single runs, lines their medians, bands {spread}; dotted lines are the floors. The dashed line is "
        "one error in all scored answers; runs without an error stand below it, at 0, with the number of scored "
        "answers."
    )
    return Drawing(figure, "\n".join([*captions, marks, *ending(results)]))


def scored(results: Results, task: str) -> dict[int, int]:
    """Size to the number of answers scored in the test set, which all runs share."""
    totals: dict[int, int] = {}
    for record in results.records:
        if record.task.label == task:
            for trial in record.trials:
                for n, counts in trial.evaluations.items():
                    totals[n] = max(totals.get(n, 0), records.counted(counts, record.task.metric)[1])
    return totals


def wrong(cell: TableCell, totals: Mapping[int, int], size: int) -> tuple[int, int]:
    """The wrong answers of all runs together at a size, and the number scored."""
    return sum(round((1 - v) * totals[size]) for v in cell.values[size]), totals[size] * len(cell.values[size])


def _turned(known: Mapping[int, Mapping[str, float]]) -> dict[int, dict[str, float]]:
    return {n: {name: 1 - share for name, share in at.items()} for n, at in known.items()}


def _panel(
    axes: Axes,
    found: list[TableCell],
    totals: Mapping[int, int],
    known: Mapping[int, Mapping[str, float]],
    looks: Mapping[str, style.Look],
) -> list[Name]:
    along = [n for n in sorted({n for cell in found for n in cell.values}) if totals.get(n)]
    least = 1 / max(totals[n] for n in along)
    none = least / BELOW
    low, high = found[0].trained
    left, right = sizes_trained(axes, along, low, high)
    decades = [10.0**-k for k in range(12) if 10.0**-k >= least]
    axes.set(yscale="log", ylim=(none / 2.5, 1.2), ylabel=UP)
    axes.set_yticks([none, *decades], ["0", *(f"{rate:g}" for rate in decades)])
    axes.set_yticks([], minor=True)
    axes.plot(along, [1 / totals[n] for n in along], color=style.SOFT, linestyle=(0, (4, 3)), linewidth=0.7, zorder=1.5)
    place = {"xytext": (0, 2), "textcoords": "offset points", "ha": "right", "va": "bottom"}
    axes.annotate("one error", (along[-1], 1 / totals[along[-1]]), **place, size=6.5, color=style.SOFT)
    for cell in found:
        errors = {n: [1 - v for v in cell.values[n]] for n in along if n in cell.values}
        line(axes, errors, looks[cell.scheme], cell.scheme, lambda rate: max(rate, none), clip_on=False)
    without = [n for n in along if any(v == 1 for cell in found for v in cell.values.get(n, ()))]
    for n in spaced(without, TEXT * (right - left)):
        end = {"xytext": (0, -4), "ha": "right"} if n == along[-1] else {"xytext": (2.5, -4), "ha": "left"}
        look = {**end, "textcoords": "offset points", "va": "top", "size": 6.5, "color": style.INK, "zorder": 4}
        axes.annotate(f"0 of {totals[n]:,}", (n, none), **look)
    axes.set_title(style.title(found[0].task), pad=9)
    axes.tick_params(length=2.5)
    here = {n: known[n] for n in along if n in known}
    return floor_lines(axes, here, next((n for n in along if n >= high), along[0]))


def _caption(found: list[TableCell], totals: Mapping[int, int], known: Mapping[int, Mapping[str, float]]) -> str:
    """The axes of a panel, and the errors of each scheme at the largest size trained on and at the largest of all."""
    cell = found[0]
    head = (
        f"{axes_named(cell.task, UP, ALONG).replace('(up)', '(up, on a log axis)')}, trained on {sizes(*cell.trained)}"
    )
    parts = [f"{head}, n = {numbers(c.n for c in found)} runs."]
    inside, every = [n for c in found for n in c.inside], [n for c in found for n in c.values]
    for n in dict.fromkeys((max(inside, default=min(every)), max(every))):
        here = sorted((c for c in found if n in c.values), key=lambda c: (wrong(c, totals, n), c.scheme))
        counted = ["{} {:,} of {:,}".format(style.plain(c.scheme), *wrong(c, totals, n)) for c in here]
        parts.append(f"Errors of all runs together at size {n}: {', '.join(counted)}.")
    return " ".join([*parts, f"{floors_named(known)[:-1]}, as error rates."])
