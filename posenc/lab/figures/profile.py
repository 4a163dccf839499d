"""Performance profiles: how many of a scheme's runs reach each score, over all tasks at once. No jax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from posenc.lab.figures import style
from posenc.lab.figures.captions import counts, listed, one_rate, rates
from posenc.lab.figures.panels import Drawing, places, shape
from posenc.lab.figures.unusual import unusual
from posenc.lab.results.control import left_out
from posenc.lab.results.profiles import TAUS, Profile, profiles
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import LEAST, cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 8
"""Lines of a panel that can be told apart."""
SCORES = (
    "A run's score on a task is its mean beyond the sizes trained on: 0 at the highest floor or below, 1 where all is"
    " right"
)


def profile(results: Results) -> Drawing:
    """The share of runs above each score; the highest interquartile means stand in the first panel."""
    curves = profiles(results)
    families = {cell.scheme: cell.family for cell in cells(results)}
    pieces = [curves[n : n + MOST] for n in range(0, len(curves), MOST)]
    looks = style.looks((curve.scheme, families[curve.scheme]) for curve in curves)
    looks = {curve.scheme: looks[curve.scheme] for curve in curves}
    rows, columns = shape(len(pieces))
    wide = 3.3 * columns + 0.9
    with style.canvas(wide, 2.6 * rows + 0.22 * style.lines(looks, wide)) as figure:
        for n, (axes, piece) in enumerate(zip(places(figure, len(pieces), sharey=True), pieces, strict=True)):
            _panel(axes, piece, looks)
            axes.set_ylabel("share of runs above it" if n % columns == 0 else "")
        style.legend(figure, looks)
    return explained(figure, _caption_lines(curves, len(pieces)), results, curves[0].tasks)


def explained(figure: Figure, lines: Sequence[str], results: Results, tasks: Sequence[str]) -> Drawing:
    """A figure over many tasks: its own lines of the caption, then the tasks, the trials and the rates."""
    table_cells = cells(results)
    trained = " ".join([*unusual(results), counts(table_cells, results.unreadable), *one_rate(table_cells)])
    ends = [*over(results, tasks), trained, *rates(table_cells)]
    return Drawing(figure, "\n".join([*lines, *ends]))


def over(results: Results, tasks: Sequence[str]) -> list[str]:
    """The tasks behind a number of many, and those that are left out, each with the reason."""
    out = [f"{style.plain(task)} ({why})" for task, why in left_out(results).items()]
    named = [f"Tasks: {listed(tasks)}."] if len(tasks) > 1 else []
    return [" ".join([*named, *([f"Left out: {', '.join(out)}."] if out else [])])] if named or out else []


def _panel(axes: Axes, curves: Sequence[Profile], looks: dict[str, style.Look]) -> None:
    for curve in curves:
        look = looks[curve.scheme]
        if curve.interval is not None:
            axes.fill_between(TAUS, *curve.interval, color=look.colour, alpha=0.13, linewidth=0, step="post")
        axes.step(TAUS, curve.above, where="post", color=look.colour, linestyle=look.dash, linewidth=1.4)
        axes.plot(TAUS[::20], curve.above[::20], look.marker, color=look.colour, markersize=3.6, markeredgewidth=0)
    axes.set(xlim=(0, 1), ylim=(-0.02, 1.02), xlabel="score", yticks=[0, 0.25, 0.5, 0.75, 1])
    axes.set_yticklabels(["0", ".25", ".5", ".75", "1"])
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["highest\nfloor", ".25", ".5", ".75", "all\nright"])
    axes.tick_params(length=2.5)


def _caption_lines(curves: Sequence[Profile], panels: int) -> list[str]:
    tasks, n = curves[0].tasks, min(curve.n for curve in curves)
    named = f"{len(tasks)} tasks" if len(tasks) > 1 else style.plain(tasks[0])
    runs = f"{named}, at least {n} runs of each"
    head = f"Performance profiles over {runs}: the share of runs with a score above each value, the mean over tasks"
    head += f"; {panels} panels, by interquartile mean" if panels > 1 else ""
    middles = ", ".join(f"{style.plain(curve.scheme)} {curve.middle:.2f}" for curve in curves[:MOST])
    more = f" and {len(curves) - MOST} lower" if len(curves) > MOST else ""
    if all(curve.interval for curve in curves):
        bands = "Bands: 95% at each score, by a percentile bootstrap over runs, stratified by task, of the mean share."
    else:
        bands = f"No bands, since they need {LEAST} runs of each task."
    return [f"{head}. {SCORES}.", f"Interquartile means: {middles}{more}. {bands}"]
