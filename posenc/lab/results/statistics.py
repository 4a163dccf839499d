"""Statistics of results: every seed counts, n is everywhere, and an interval is named or not drawn.

Below six runs there is no 95 % interval worth its name (a bootstrap over three covers 73 %), so the range is given and
called the range. From six on it is the interval between two order statistics. It holds the median with at least 95 %,
whatever the distribution; six is the least n for which it exists. A percentile bootstrap of the mean of six runs covers
about 87 %. Nothing here imports jax; SciPy is imported where it is needed.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from posenc.lab.metrics import LOSSES, merit
from posenc.lab.results.floors import BAYES
from posenc.lab.results.rates import Rates, by_seed, rates_by_cell
from posenc.lab.results.results import Results, Row, grouped
from posenc.lab.results.sizes import other_places
from posenc.lab.results.ties import TOLERANCE, difference, mean, median, wilcoxon
from posenc.lab.store.schema import TaskRecord, TrialRecord, UnfinishedTrial
from posenc.language.echo import shorten

LEAST = 6
LEVEL = 0.95
ALPHA = 0.05
ENOUGH = 10
"""The number of pairs from which Wilcoxon's test can show a difference also after correction for a few dozen tests."""
HOLDS = 0.9
"""The least median accuracy at a size up to which a scheme holds."""
Runs = Mapping[tuple[float, int], float]
"""Learning rate and seed to the value of a run."""
RANGE = "range"
INTERVAL = "exact 95% interval of the median"


@dataclass(frozen=True)
class Summary:
    """Several runs in five numbers. `kind` names what `low` and `high` are."""

    n: int
    median: float
    mean: float
    low: float
    high: float
    kind: str


@dataclass(frozen=True, kw_only=True)
class TableCell(Rates):
    """One scheme on one task, at the learning rates that tie in validation: the values of all seeds at each size, and
    the counts."""

    task: str
    scheme: str
    family: str
    metric: str
    trained: tuple[int, int]
    """The smallest and the largest size trained on, of its own records: a sweep may vary them."""
    rates: tuple[float, ...]
    """All that were tried."""
    values: Mapping[int, tuple[float, ...]]
    """Size to one value per seed, in the order of `seeds`: the median of its runs at the `reported` rates. A diverged
    run enters as the uniform guess."""
    seeds: Mapping[int, tuple[int, ...]]
    counts: Mapping[str, int]
    """Trials per outcome, over all learning rates tried, tuning ones among them."""
    examples: Mapping[int, int]
    """Size to the number of test examples, which all runs share."""
    left_out: Mapping[float, int]
    """Rate to the reported trials at it, where those seeds chose another."""
    runs: Mapping[int, Runs]
    """Size to the reported runs at these rates."""
    tuning_runs: Mapping[int, Runs]
    """Size to the runs of the tuning seeds at the rates that tie."""
    exact: Mapping[int, tuple[float, float]]
    """For losses in nats, size to the losses of the unigram model and of the optimal predictor, if they are known."""

    @property
    def n(self) -> int:
        """How many seeds the numbers rest on, at most."""
        return max((len(v) for v in self.values.values()), default=0)

    @property
    def beyond(self) -> tuple[int, ...]:
        """The sizes longer than any trained on."""
        return tuple(size for size in self.values if size > self.trained[1])

    @property
    def inside(self) -> tuple[int, ...]:
        """The sizes within the training range."""
        return tuple(size for size in self.values if self.trained[0] <= size <= self.trained[1])

    @property
    def holds_to(self) -> int | None:
        """The largest size up to which the median is at least 90 % at every size measured; None where there is none,
        and of losses."""
        if self.metric in LOSSES:
            return None
        return furthest({n: median(of) if of else 0.0 for n, of in self.values.items()})

    def means(self, sizes: Iterable[int]) -> dict[int, float]:
        """Seed to the mean over some sizes, the median over the `reported` rates; a seed that lacks a size is left
        out."""
        return by_seed(self.run_means(sizes), self.reported) if self.reported else {}

    def run_means(self, sizes: Iterable[int]) -> Runs:
        """The mean of each reported run over some sizes; a run that lacks one of them is left out."""
        each = [self.runs[size] for size in sizes]
        shared = set.intersection(*map(set, each)) if each else set()
        return {run: mean([values[run] for values in each]) for run in sorted(shared)}


@dataclass(frozen=True)
class Comparison:
    """Two schemes on one task, paired by seed. `better` is P(a > b) + half P(a = b) over the pairs; of losses, P(a < b)
    takes the place of P(a > b)."""

    task: str
    first: str
    second: str
    sizes: str
    pairs: tuple[tuple[int, float, float], ...]
    """(seed, value of the first, value of the second)"""
    better: float
    interval: tuple[float, float] | None
    """The 95 % Wilson score interval of `better`, from six pairs on."""
    difference: Summary
    wilcoxon: float | None
    """Two-sided p of the Wilcoxon signed-rank test, from six pairs on."""
    over: tuple[int, ...] = ()
    """The sizes over which a value is averaged."""
    by_rate: Mapping[float, float] = field(default_factory=dict)
    """Each learning rate at which both are reported, to the median difference at it."""
    metric: str = ""

    @property
    def n(self) -> int:
        """How many pairs there are."""
        return len(self.pairs)


def furthest(medians: Mapping[int, float]) -> int | None:
    """The largest size up to which every median is at least 0.9; None where there is none."""
    return max(itertools.takewhile(lambda n: medians[n] >= HOLDS - TOLERANCE, sorted(medians)), default=None)


def summary(values: Iterable[float]) -> Summary:
    """All runs of one thing in five numbers: the range below six runs, the exact interval of the median above."""
    x = sorted(map(float, values))
    n = len(x)
    if n == 0:
        return Summary(0, math.nan, math.nan, math.nan, math.nan, RANGE)
    if not all(map(math.isfinite, x)):
        raise ValueError("A value is not finite; count a diverged run as the floor before summing up.")
    rank = interval_rank(n)
    low, high = (x[0], x[-1]) if rank is None else (x[rank], x[n - 1 - rank])
    kind = RANGE if rank is None else INTERVAL
    return Summary(n, median(x), min(max(mean(x), x[0]), x[-1]), low, high, kind)


def cells(results: Results) -> tuple[TableCell, ...]:
    """Every scheme on every task, by task and scheme: what tables and figures show."""
    rows, tuning = (
        grouped(((row.task, row.scheme), row) for row in each) for each in (results.rows(), results.tuning_rows())
    )
    lost = grouped(((trial.task, results.label(trial, trial)), trial) for trial in results.unfinished)
    tasks, rates_of = results.tasks(), rates_by_cell(results)
    return tuple(
        _cell(key, rows.get(key, []), tuning.get(key, []), lost.get(key, []), tasks, rates_of.get(key, Rates()))
        for key in sorted({*rows, *tuning, *lost})
    )


def at_chosen_rates(results: Results) -> Iterator[tuple[TaskRecord, str, TrialRecord]]:
    """The trials at the learning rates that are reported, with their tasks and labels."""
    rates_of = rates_by_cell(results)
    for record in results.records:
        for trial in record.trials:
            label = results.label(record, trial)
            if trial.knobs.lr in rates_of[record.task.label, label].reported:
                yield record.task, label, trial


def by_range(table_cells: Iterable[TableCell]) -> dict[tuple[str, tuple[int, int]], list[TableCell]]:
    """Task and sizes trained on to the cells of all its schemes: what a panel or a block of a table shows."""
    return grouped(((cell.task, cell.trained), cell) for cell in table_cells)


def compare(
    results: Results, first: str, second: str, size: int | None = None, table_cells: Iterable[TableCell] | None = None
) -> tuple[Comparison, ...]:
    """Two schemes on each task that both ran: one pair per seed, which share their data.

    A pair holds means over the sizes beyond the training range that both have, or the values at `size`. Sizes are no
    pairs of their own, for those of one run are not independent; nor are tasks, for one seed runs them all.
    A caller may give the cells of the results, where it has them.
    """
    table = {(c.task, c.scheme): c for c in (cells(results) if table_cells is None else table_cells)}
    schemes = sorted({scheme for _, scheme in table})
    for name in (first, second):
        if name not in schemes:
            raise ValueError(f"{name!r} is not in these results; they hold {shorten(name, schemes) or 'none'}.")
    if first == second:
        raise ValueError(f"{first!r} is compared with itself; give two of {', '.join(schemes)}.")
    sizes = sorted({n for (_, scheme), cell in table.items() if scheme in (first, second) for n in cell.values})
    if size is not None and size not in sizes:
        has = ", ".join(map(str, sizes)) or "none"
        raise ValueError(f"Neither {first!r} nor {second!r} was measured at size {size}; their sizes are {has}.")
    where = "the sizes beyond the training range" if size is None else f"size {size}"
    _check_places(results, first, second)
    made = []
    for task in sorted({task for task, _ in table}):
        a, b = table.get((task, first)), table.get((task, second))
        if a is not None and b is not None and (pairs := _pairs(a, b, over := _over(a, b, size))):
            made.append(_compared(a, b, where, over, pairs))
    if not made:
        raise ValueError(
            f"{first!r} and {second!r} share no seed of a task at {where}; run both with the same --seeds and --sizes."
        )
    return tuple(made)


def _check_places(results: Results, *schemes: str) -> None:
    """Raise `ValueError` where a task's metric counts other places of one scheme than of another."""
    firsts: dict[str, set[int | None]] = {}
    for record in results.records:
        if record.task.metric == "beyond" and any(results.label(record, trial) in schemes for trial in record.trials):
            firsts.setdefault(record.task.label, set()).add(record.task.first_beyond)
    for task, places in firsts.items():
        if apart := other_places(places):
            raise ValueError(
                f"{' and '.join(map(repr, schemes))} cannot be compared on {task}: {apart}; read them by another"
                " metric, such as 'last'."
            )


def least_p(n: int) -> float:
    """Return the smallest two-sided p that Wilcoxon's signed-rank test can have with `n` pairs."""
    return min(1.0, 2.0 ** (1 - n))


@cache
def interval_rank(n: int) -> int | None:
    """The largest k for which [x_k, x_(n-1-k)], counted from 0, holds the median with 95 %; None below six runs."""
    best, below = None, 0
    for k in range(n // 2):
        below += math.comb(n, k)
        if 1 - 2 * below / 2**n < LEVEL:
            break
        best = k
    return best


def _cell(
    key: tuple[str, str],
    rows: list[Row],
    tuning: list[Row],
    lost: list[UnfinishedTrial],
    tasks: Mapping[str, TaskRecord],
    rates_of: Rates,
) -> TableCell:
    (task, scheme), all_rows = key, [*rows, *tuning]
    counts = dict(Counter([r.outcome for r in {r.trial: r for r in all_rows}.values()] + [u.outcome for u in lost]))
    metric = tasks[task].metric if task in tasks else ""
    runs = _runs(rows, rates_of.reported)
    values = {s: by_seed(of, rates_of.reported) for s, of in runs.items()}
    others = Counter(lr for _, lr in {(r.trial, r.lr) for r in rows if r.lr not in rates_of.reported})
    floors = tasks[task].floors.items() if metric in LOSSES else ()
    return TableCell(
        **vars(rates_of),
        task=task,
        scheme=scheme,
        family=(all_rows or lost)[0].family,
        metric=metric,
        trained=_trained(all_rows, lost),
        rates=tuple(sorted({r.lr for r in all_rows} | {u.knobs.lr for u in lost})),
        values={s: tuple(of.values()) for s, of in values.items()},
        seeds={s: tuple(of) for s, of in values.items()},
        counts=counts,
        examples={s: max(r.rows for r in all_rows if r.size == s) for s in sorted({r.size for r in all_rows})},
        left_out=others if rates_of.tuning else {},
        runs=runs,
        tuning_runs=_runs(tuning, rates_of.ties),
        exact={n: (at["unigram"], at[BAYES]) for n, at in floors if at.get(BAYES) is not None},
    )


def _runs(rows: Sequence[Row], rates: Collection[float]) -> dict[int, Runs]:
    """Size to the values of the runs at some rates."""
    runs: dict[int, dict[tuple[float, int], float]] = {}
    for row in rows:
        if row.lr in rates:
            runs.setdefault(row.size, {})[row.lr, row.seed] = row.value
    return dict(sorted(runs.items()))


def _trained(rows: list[Row], lost: list[UnfinishedTrial]) -> tuple[int, int]:
    """The range of a cell's rows. They agree on it: `shortest` and `length` are settings, which labels name."""
    if rows:
        return rows[0].trained_from, rows[0].trained_to
    low, high = (lost[0].run.get(name) for name in ("shortest", "length"))
    return (low, high) if isinstance(low, int) and isinstance(high, int) else (0, 0)


def _over(a: TableCell, b: TableCell, size: int | None) -> tuple[int, ...]:
    """The sizes at which two are compared: those beyond the training of both, or the one given."""
    sizes = {*a.beyond} & {*b.beyond} if size is None else {size} & {*a.values} & {*b.values}
    return tuple(sorted(sizes))


def _pairs(a: TableCell, b: TableCell, sizes: Sequence[int]) -> list[tuple[int, float, float]]:
    ours, theirs = a.means(sizes), b.means(sizes)
    return [(seed, ours[seed], theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())]


def _by_rate(a: TableCell, b: TableCell, sizes: Sequence[int]) -> dict[float, float]:
    """The median over seeds of the difference between two runs at the same rate."""
    ours, theirs = a.run_means(sizes), b.run_means(sizes)
    gaps = grouped((run[0], ours[run] - theirs[run]) for run in sorted(ours.keys() & theirs.keys()))
    return {rate: median(of) for rate, of in gaps.items()}


def _compared(
    a: TableCell, b: TableCell, where: str, over: tuple[int, ...], pairs: list[tuple[int, float, float]]
) -> Comparison:
    gaps = [difference(ours, theirs) for _, ours, theirs in pairs]
    ahead = [merit(a.metric, gap) for gap in gaps]
    better = (sum(gap > 0 for gap in ahead) + 0.5 * sum(gap == 0 for gap in ahead)) / len(gaps)
    interval = wilson(better, len(gaps)) if len(gaps) >= LEAST else None
    p = wilcoxon(gaps) if len(gaps) >= LEAST else None
    head = (a.task, a.scheme, b.scheme, where, tuple(pairs))
    return Comparison(*head, better, interval, summary(gaps), p, over, _by_rate(a, b, over), a.metric)


def wilson(share: float, n: int) -> tuple[float, float]:
    """The 95 % score interval of a share; unlike a bootstrap it has a width where all pairs agree."""
    z = 1.959963984540054
    middle, spread = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, (middle - spread) / (1 + z * z / n)), min(1.0, (middle + spread) / (1 + z * z / n))
