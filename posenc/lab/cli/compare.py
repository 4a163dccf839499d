"""`posenc compare`: two schemes on each task, or one against each other scheme. It needs no jax."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
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
    from posenc.lab.results.results import Results
    from posenc.lab.results.statistics import Comparison, TableCell


@dataclass(frozen=True)
class Compare:
    """Two schemes on each task that both ran, paired by seed: the probability that the first is better.

    Without B, A is the control: it is compared with each other scheme, and p is corrected for all tests (Holm).
    """

    run: First
    """A run, its folder, a bundle, or an experiment (its name or file) whose record is committed."""
    first: Annotated[Positional[str], arg(metavar="A")]
    """A scheme, by its name in tables."""
    second: Annotated[Positional[str | None], arg(metavar="B", help_behavior_hint="")] = None
    """The scheme to compare it with. Default: each other scheme."""
    size: Annotated[int | None, arg(metavar="INT", help_behavior_hint="")] = None
    """Compare at this size. Default: the mean over all sizes beyond the training range."""
    metric: Metric = None
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        from posenc.lab.figures.captions import rates
        from posenc.lab.results.statistics import cells

        results = results_of(self.run, self.metric)
        check_finished(results, self.run)
        table = cells(results)
        labels = [cell.scheme for cell in table]
        first = chosen.scheme(self.first, labels)
        second = None if self.second is None else chosen.scheme(self.second, labels)
        others = [second] if second else sorted({*labels} - {first})
        comparisons = compared(results, table, first, others, self.size)
        shown = tuple(cell for cell in table if cell.scheme in {first, *(pair.second for pair in comparisons)})
        doubts = _doubts(results, comparisons, table)
        corrected = _corrected(comparisons, doubts)
        missing = [other for other in others if other not in {pair.second for pair in comparisons}]
        alone = [f"Not compared, since no seed of a task is shared: {', '.join(missing)}."] if missing else []
        if self.json:
            rows = [_row(pair, doubts.get(_key(pair)), corrected.get(_key(pair))) for pair in comparisons]
            say_json({"first": first, "second": second, "tasks": rows, "notes": [*alone, *rates(shown)]})
        else:
            lines = [_line(pair, doubts.get(_key(pair)), corrected) for pair in comparisons]
            against = second or plural(len({pair.second for pair in comparisons}), "scheme")
            head = f"{first} against {against}, paired by seed, over {comparisons[0].sizes}"
            say("\n".join([head, *lines, *alone, *_few(comparisons, doubts), *rates(shown)]))
        report(results.problems)
        return 0


def compared(
    results: Results, table: Sequence[TableCell], first: str, others: Sequence[str], size: int | None
) -> list[Comparison]:
    """A scheme against others on every task. Raises `ValueError` if it can be compared with none of them."""
    from posenc.lab.results.statistics import compare

    comparisons: list[Comparison] = []
    refusals: list[ValueError] = []
    for other in others:
        try:
            comparisons += compare(results, first, other, size, table)
        except ValueError as error:
            refusals.append(error)
    if not others:
        raise ValueError(f"{first!r} is the only scheme of these results; give a run with others.")
    if not comparisons:
        raise refusals[0]
    return comparisons


def _key(comparison: Comparison) -> tuple[str, str]:
    return comparison.task, comparison.second


def _corrected(
    comparisons: Sequence[Comparison], doubts: Mapping[tuple[str, str], Doubt]
) -> dict[tuple[str, str], float]:
    """Task and second scheme to p after Holm's correction for all that are tested here."""
    from posenc.lab.results.ties import holm

    tested = [pair for pair in comparisons if pair.wilcoxon is not None and _key(pair) not in doubts]
    return dict(zip(map(_key, tested), holm([pair.wilcoxon or 0.0 for pair in tested]), strict=True))


class Doubt(NamedTuple):
    """Why neither of two schemes is called better on a task."""

    reason: str
    measured: bool
    """True if the difference is of anything but guesses."""


def _doubts(
    results: Results, comparisons: Sequence[Comparison], table: Sequence[TableCell]
) -> dict[tuple[str, str], Doubt]:
    """Task and second scheme to the doubt about their comparison, where there is one."""
    from posenc.lab.figures.floor_lines import NAMES
    from posenc.lab.results.floors import best_floor
    from posenc.lab.results.learned import PAIR, WHY, at_floor, hindrance
    from posenc.lab.results.losses import falling

    tasks, fell, doubts = results.tasks(), falling(results, table), {}
    for comparison in comparisons:
        schemes, task = (comparison.first, comparison.second), tasks[comparison.task]
        both = [cell for cell in table if cell.task == comparison.task and cell.scheme in schemes]
        if at_floor(task, both, comparison.over) and (floor := best_floor(task, comparison.over)):
            height = f"{NAMES[floor[0]]} {floor[1]:.2f}".replace(" 0.", " .")
            doubts[_key(comparison)] = Doubt(f"both at the baseline ({height}); not compared", False)
        elif why := hindrance(both, fell, beyond=any(n in cell.beyond for n in comparison.over for cell in both)):
            doubts[_key(comparison)] = Doubt(WHY[why].format(**PAIR), True)
    return doubts


def _row(comparison: Comparison, doubt: Doubt | None, corrected: float | None) -> dict[str, Any]:
    """Return a comparison as JSON, without keys that do not apply."""
    row = dataclasses.asdict(comparison) | {"holm": corrected, "doubt": doubt and doubt.reason}
    if doubt is not None:
        row |= dict.fromkeys(("better", "interval", "wilcoxon", *(() if doubt.measured else ("difference", "by_rate"))))
    return row


def _line(comparison: Comparison, doubt: Doubt | None, corrected: Mapping[tuple[str, str], float]) -> str:
    """One comparison, every number with its n and the name of its interval."""
    gap, n = comparison.difference, f"n = {comparison.n} seeds"
    difference = f"median difference {gap.median:+.3f}, {gap.kind} [{gap.low:+.3f}, {gap.high:+.3f}]"
    if len(comparison.by_rate) > 1:
        medians = (f"{rate:g} {median:+.3f}" for rate, median in comparison.by_rate.items())
        difference += f", by rate {', '.join(medians)}"
    sign = "<" if comparison.metric in LOSSES else ">"
    pair = f"{comparison.first} {sign} {comparison.second}"
    if doubt is not None:
        return f"{comparison.task}: {pair}: {f'{difference}, {n}; ' * doubt.measured}{doubt.reason}."
    interval = " [{:.2f}, {:.2f}], 95% Wilson".format(*comparison.interval) if comparison.interval else ""
    p = f"; Wilcoxon p = {comparison.wilcoxon:.3g}" if comparison.wilcoxon is not None else ""
    if p and len(corrected) > 1:
        p += f", {corrected[_key(comparison)]:.2g} after Holm"
    return f"{comparison.task}: P({pair}) = {comparison.better:.2f}{interval}, {n}; {difference}{p}"


def _few(comparisons: Sequence[Comparison], doubts: Mapping[tuple[str, str], Doubt]) -> list[str]:
    """Say if seeds are too few: for an interval, or for a p that survives the correction."""
    from posenc.lab.results.statistics import ALPHA, ENOUGH, LEAST, least_p

    compared_here = [pair for pair in comparisons if _key(pair) not in doubts]
    few = dict.fromkeys(pair.task for pair in compared_here if pair.interval is None)
    where = "" if len(few) == len({pair.task for pair in comparisons}) else f" on {', '.join(few)}"
    lines = [f"Fewer than {LEAST} seeds{where}: no interval and no test; run more."] if few else []
    tested = [pair.n for pair in compared_here if pair.wilcoxon is not None]
    if tested and (n := min(tested)) < ENOUGH:
        line = f"Wilcoxon's p is {least_p(n):.2g} at least with {n} seeds"
        if least_p(n) * len(tested) > ALPHA:
            line += f", which cannot reach {ALPHA:g} after correction for {len(tested)} tests"
        lines.append(f"{line}; use {ENOUGH} seeds, with which it is {least_p(ENOUGH):.1g}.")
    return lines
