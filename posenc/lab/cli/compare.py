"""`posenc compare`: two schemes on each task, or one against all others over all tasks. It needs no jax."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from tyro.conf import Positional, arg

from posenc.lab.cli import chosen
from posenc.lab.cli.options import First, Flag, Metric
from posenc.lab.cli.output import report, say, say_json
from posenc.lab.cli.read import check_finished, results_of
from posenc.lab.metrics import LOSSES
from posenc.language.echo import plural

if TYPE_CHECKING:
    from posenc.lab.results.control import Against
    from posenc.lab.results.results import Results
    from posenc.lab.results.statistics import Comparison, TableCell
    from posenc.lab.store.schema import TaskRecord

HINDERED = {
    "both": "neither solves the sizes trained on and both losses still fell, so this compares speed of learning; train"
    " longer",
    "unsolved": "neither solves the sizes trained on, so neither is called better beyond them",
    "falling": "both losses still fell, so this compares speed of learning; train longer",
}
"""Why neither scheme is called better."""


@dataclass(frozen=True)
class Compare:
    """Two schemes on each task that both ran, paired by seed: the probability that the first is better.

    Without B, A is the control: each other scheme beside it, over all tasks that all schemes ran.
    """

    run: First
    """A run, its folder, a bundle, or an experiment (its name or file) whose record is committed."""
    first: Annotated[Positional[str], arg(metavar="A")]
    """A scheme, by its name in tables."""
    second: Annotated[Positional[str | None], arg(metavar="B", help_behavior_hint="")] = None
    """The scheme to compare it with. Default: all others."""
    size: int | None = None
    """Compare two at this size. Default: the mean over all sizes beyond the training range."""
    metric: Metric = None
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        if self.second is None and self.size is not None:
            raise ValueError("--size needs two schemes; name a second one, or leave --size out.")
        if self.second is None and self.metric is not None:
            raise ValueError(
                "--metric needs two schemes: with one, scores are counted from floors, which are not known by"
                " every metric; name a second scheme, or leave --metric out."
            )
        from posenc.lab.figures.captions import rates
        from posenc.lab.results.statistics import cells

        results = results_of(self.run, self.metric)
        check_finished(results, self.run)
        labels = [cell.scheme for cell in cells(results)]
        first = chosen.scheme(self.first, labels)
        if self.second is None:
            from posenc.lab.figures.profile import over
            from posenc.lab.results.control import against

            beside = against(results, first)
            notes = [*over(results, beside[0].tasks[:1]), *rates(cells(results))]  # the first line has the tasks
            if self.json:
                rows = [dataclasses.asdict(row) for row in beside]
                say_json({"control": first, "schemes": rows, "notes": notes})
            else:
                say("\n".join([ranked(beside), *notes]))
        else:
            from posenc.lab.results.statistics import compare

            second = chosen.scheme(self.second, labels)
            comparisons = compare(results, first, second, self.size)
            shown = tuple(cell for cell in cells(results) if cell.scheme in (first, second))
            doubts = _doubts(results, comparisons, shown)
            if self.json:
                rows = [_row(comparison, doubts.get(comparison.task)) for comparison in comparisons]
                say_json({"first": first, "second": second, "tasks": rows, "notes": rates(shown)})
            else:
                say("\n".join([_paired(comparisons, doubts, results.tasks()), *rates(shown)]))
        report(results.problems)
        return 0


class Doubt(NamedTuple):
    """Why neither of two schemes is called better on a task."""

    reason: str
    measured: bool
    """Whether the difference is of anything but guesses."""


def _doubts(results: Results, comparisons: tuple[Comparison, ...], shown: tuple[TableCell, ...]) -> dict[str, Doubt]:
    """Task to the doubt about its comparison, where there is one."""
    from posenc.lab.figures.floor_lines import NAMES
    from posenc.lab.results.floors import best_floor
    from posenc.lab.results.learned import at_floor, hindrance
    from posenc.lab.results.losses import falling

    tasks, fell, doubts = results.tasks(), falling(results), {}
    for comparison in comparisons:
        both = [cell for cell in shown if cell.task == comparison.task]
        task = tasks[comparison.task]
        if at_floor(task, both, comparison.over) and (floor := best_floor(task, comparison.over)):
            height = f"{NAMES[floor[0]]} {floor[1]:.2f}".replace(" 0.", " .")
            doubts[comparison.task] = Doubt(f"both at the floor ({height}); not compared", False)
        elif why := hindrance(both, fell, beyond=any(n in cell.beyond for n in comparison.over for cell in both)):
            doubts[comparison.task] = Doubt(HINDERED[why], True)
    return doubts


def _row(comparison: Comparison, doubt: Doubt | None) -> dict[str, Any]:
    """A comparison as JSON, without what is not said of it."""
    row = dataclasses.asdict(comparison) | {"doubt": doubt and doubt.reason}
    if doubt is not None:
        row |= dict.fromkeys(("better", "interval", "wilcoxon", *(() if doubt.measured else ("difference", "by_rate"))))
    return row


def _paired(comparisons: tuple[Comparison, ...], doubts: Mapping[str, Doubt], tasks: Mapping[str, TaskRecord]) -> str:
    """A line for each task, every number with its n and the name of its interval."""
    lines = [f"{comparisons[0].first} against {comparisons[0].second}, paired by seed, over {comparisons[0].sizes}"]
    for comparison in comparisons:
        gap, doubt = comparison.difference, doubts.get(comparison.task)
        sign = "<" if tasks[comparison.task].metric in LOSSES else ">"
        difference = f"median difference {gap.median:+.3f}, {gap.kind} [{gap.low:+.3f}, {gap.high:+.3f}]"
        if len(comparison.by_rate) > 1:
            medians = (f"{rate:g} {median:+.3f}" for rate, median in comparison.by_rate.items())
            difference += f", by rate {', '.join(medians)}"
        if doubt is not None:
            numbers = f"{difference}, n = {comparison.n} seeds; " if doubt.measured else ""
            lines.append(f"{comparison.task}: {numbers}{doubt.reason}.")
            continue
        interval = " [{:.2f}, {:.2f}], 95% Wilson".format(*comparison.interval) if comparison.interval else ""
        p = f"; Wilcoxon p = {comparison.wilcoxon:.3g}" if comparison.wilcoxon is not None else ""
        lines.append(
            f"{comparison.task}: P({comparison.first} {sign} {comparison.second}) = {comparison.better:.2f}{interval}, "
            f"n = {comparison.n} seeds; {difference}{p}"
        )
    tested = tuple(comparison for comparison in comparisons if comparison.task not in doubts)
    few = [comparison.task for comparison in tested if comparison.interval is None]
    where = "" if len(few) == len(comparisons) else f" on {', '.join(few)}"
    lines += [f"Fewer than 6 seeds{where}: no interval and no test; run more."] if few else []
    return "\n".join([*lines, *_least(tested)])


def _least(comparisons: tuple[Comparison, ...]) -> list[str]:
    """The smallest p that so few pairs can have, where several tasks need a smaller one."""
    from posenc.lab.results.statistics import ALPHA, ENOUGH, least_p

    ns = sorted(
        {comparison.n for comparison in comparisons if comparison.wilcoxon is not None and comparison.n < ENOUGH}
    )
    if not ns:
        return []
    least, tests = least_p(ns[0]), sum(comparison.wilcoxon is not None for comparison in comparisons)
    line = f"Wilcoxon's p is {least:.2g} at least with {ns[0]} seeds"
    if least * tests > ALPHA:
        line += f", which cannot reach {ALPHA:g} after correction for {tests} tasks"
    return [f"{line}; use {ENOUGH} seeds, with which it is {least_p(ENOUGH):.1g}."]


def ranked(beside: tuple[Against, ...]) -> str:
    """A line for each scheme, the control first."""
    from posenc.lab.results.control import TASKS

    control, *others = beside
    lines = [
        f"{control.scheme} is the control, over {plural(len(control.tasks), 'task')} beyond the sizes trained on: "
        f"{', '.join(control.tasks)}",
        f"{control.scheme}: rank {control.rank:.2f} of {len(beside)}, {_score(control)}",
    ]
    for other in others:
        p = "" if other.p is None else f" (p = {other.p:.2g} after Holm)"
        interval = _interval(other.improvement_interval)
        lines.append(
            f"{other.scheme}: rank {other.rank:.2f}{p}, better than {control.scheme} with probability "
            f"{other.improvement:.2f}{interval}, {_score(other)}"
        )
    lines.append(
        "Scores: 0 is the highest floor or worse, 1 everything right, or the least loss. Ranks: 1 is the best."
    )
    if len(control.tasks) < TASKS:
        lines.append(f"Fewer than {TASKS} tasks: ranks are not tested.")
    if any(row.middle_interval is None for row in beside):
        lines.append("Brackets need 6 seeds of every task; run more.")
    else:
        lines.append(
            "Brackets: of a probability 95% Wilson, of as many runs as a task has; of the interquartile mean 95%"
            " percentile bootstrap over runs, stratified by task."
        )
    return "\n".join(lines)


def _score(row: Against) -> str:
    n = f"n = {row.n} of each task"
    return f"interquartile mean of scores {row.middle:.2f}{_interval(row.middle_interval)}, {n}"


def _interval(ends: tuple[float, float] | None) -> str:
    return f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends else ""
