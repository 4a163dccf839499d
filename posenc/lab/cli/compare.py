"""`posenc compare`: two schemes on each task, or one against all others over all tasks. It needs no jax."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from posenc.lab.cli.options import First, Flag, Metric
from posenc.lab.cli.output import say, say_json
from posenc.lab.cli.read import check_finished, report, results_of
from posenc.language.echo import counted

if TYPE_CHECKING:
    from posenc.lab.results.control import Against
    from posenc.lab.results.statistics import Comparison


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
    """The share of answer tokens, whole answers or last answer tokens that are right. Default: the task's own."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        if self.second is None and self.size is not None:
            raise ValueError("--size needs two schemes; name a second one, or leave --size out.")
        if self.second is None and self.metric is not None:
            raise ValueError(
                "--metric needs two schemes: with one, scores are counted from floors, which are known by the task's"
                " own metric alone; name a second scheme, or leave --metric out."
            )
        from posenc.lab.figures.captions import rates
        from posenc.lab.results.statistics import cells

        results = results_of(self.run, self.metric)
        check_finished(results, self.run)
        if self.second is None:
            from posenc.lab.figures.profile import over
            from posenc.lab.results.control import against

            beside = against(results, self.first)
            notes = [*over(results, beside[0].tasks[:1]), *rates(cells(results))]  # the first line has the tasks
            if self.json:
                rows = [dataclasses.asdict(one) for one in beside]
                say_json({"control": self.first, "schemes": rows, "notes": notes})
            else:
                say("\n".join([_ranked(beside), *notes]))
        else:
            from posenc.lab.results.statistics import compare

            found = compare(results, self.first, self.second, self.size)
            shown = tuple(cell for cell in cells(results) if cell.scheme in (self.first, self.second))
            if self.json:
                rows = [dataclasses.asdict(one) for one in found]
                say_json({"first": self.first, "second": self.second, "tasks": rows, "notes": rates(shown)})
            else:
                say("\n".join([_paired(found), *rates(shown)]))
        report(results.problems)
        return 0


def _paired(found: tuple[Comparison, ...]) -> str:
    """A line for each task, every number with its n and the name of its interval."""
    lines = [f"{found[0].first} against {found[0].second}, paired by seed, over {found[0].sizes}"]
    for one in found:
        gap = one.difference
        interval = f" [{one.interval[0]:.2f}, {one.interval[1]:.2f}], 95% Wilson" if one.interval else ""
        p = f"; Wilcoxon p = {one.wilcoxon:.3g}" if one.wilcoxon is not None else ""
        spread = f"{gap.kind} [{gap.low:+.3f}, {gap.high:+.3f}]"
        lines.append(
            f"{one.task}: P({one.first} > {one.second}) = {one.better:.2f}{interval}, n = {one.n} seeds; "
            f"median difference {gap.median:+.3f}, {spread}{p}"
        )
    few = [one.task for one in found if one.interval is None]
    where = "" if len(few) == len(found) else f" on {', '.join(few)}"
    lines += [f"Fewer than 6 seeds{where}: no interval and no test; run more."] if few else []
    return "\n".join([*lines, *_least(found)])


def _least(found: tuple[Comparison, ...]) -> list[str]:
    """The smallest p that so few pairs can have, where several tasks need a smaller one."""
    from posenc.lab.results.statistics import ALPHA, ENOUGH, least_p

    ns = sorted({one.n for one in found if one.wilcoxon is not None and one.n < ENOUGH})
    if not ns:
        return []
    least, tests = least_p(ns[0]), sum(one.wilcoxon is not None for one in found)
    line = f"Wilcoxon's p is {least:.2g} at least with {ns[0]} seeds"
    if least * tests > ALPHA:
        line += f", which cannot reach {ALPHA:g} after correction for {tests} tasks"
    return [f"{line}; use {ENOUGH} seeds, with which it is {least_p(ENOUGH):.1g}."]


def _ranked(beside: tuple[Against, ...]) -> str:
    """A line for each scheme, the control first."""
    from posenc.lab.results.control import TASKS

    control, *others = beside
    lines = [
        f"{control.scheme} is the control, over {counted(len(control.tasks), 'task')} beyond the sizes trained on: "
        f"{', '.join(control.tasks)}",
        f"{control.scheme}: rank {control.rank:.2f} of {len(beside)}, {_score(control)}",
    ]
    for one in others:
        p = "" if one.p is None else f" (p = {one.p:.2g} after Holm)"
        interval = _interval(one.improvement_interval)
        lines.append(
            f"{one.scheme}: rank {one.rank:.2f}{p}, better than {control.scheme} with probability "
            f"{one.improvement:.2f}{interval}, {_score(one)}"
        )
    lines.append("Scores: 0 is the highest floor, 1 everything right. Ranks: 1 is the best.")
    if len(control.tasks) < TASKS:
        lines.append(f"Fewer than {TASKS} tasks: ranks are not tested.")
    if any(one.middle_interval is None for one in beside):
        lines.append("Brackets need 6 seeds of every task; run more.")
    else:
        what = "of the interquartile mean and of the mean probability over tasks"
        lines.append(f"Brackets: 95% percentile bootstrap over runs, stratified by task, {what}.")
    return "\n".join(lines)


def _score(one: Against) -> str:
    n = f"n = {one.n} of each task"
    return f"interquartile mean of scores {one.middle:.2f}{_interval(one.middle_interval)}, {n}"


def _interval(ends: tuple[float, float] | None) -> str:
    return f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends else ""
