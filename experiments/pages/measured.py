"""Measurements of an experiment as a page quotes them: queries of the table of `posenc.load`, and the verdicts."""

from __future__ import annotations

import functools
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

import posenc
from posenc.lab.metrics import LOSSES
from posenc.lab.results.excess import effective_memories
from posenc.lab.results.losses import falling
from posenc.lab.results.results import load
from posenc.lab.results.statistics import HOLDS, Summary, summary
from posenc.lab.results.verdicts import findings
from posenc.lab.spec import committed
from posenc.lab.spec.experiment_file import executed, from_file

FOLDER = Path(__file__).resolve().parent.parent
TIMES = (1, 2, 4)
"""Sizes of a page's table, in units of the longest trained size."""
MEMORY = "memory"
"""The metric of how many tokens an exact reader must see to lose as much."""
BASELINE = "baseline"


class Measured:
    """One experiment, its claims, and its committed record as a table."""

    def __init__(self, name: str):
        self.name, self.path = name, FOLDER / f"{name}.py"
        self.experiment = from_file(self.path, yes=True)
        self.reading: str = getattr(executed(self.path), "reading", "")
        """The text by hand, with fields."""
        record = committed.record_of(self.path)
        self.results = load(record) if record.is_file() else None
        self.table = self._table() if self.results else pd.DataFrame()

    def _table(self) -> pd.DataFrame:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            table = posenc.load(self.path, bins=True)
        table.attrs = {}
        return table[table.part == "test"]

    @functools.cached_property
    def lines(self) -> dict[str, pd.DataFrame]:
        """Task to its lines about whole examples."""
        return {str(task): of for task, of in self.table[self.table.bin.isna()].groupby("task", observed=True)}

    @functools.cached_property
    def _reported(self) -> dict[tuple[Any, ...], dict[int, float]]:
        """Task, scheme, size and metric to the value of each seed: the median over its reported rates."""
        t = self.table
        t = t[(t.outcome != BASELINE) & ~t.tuning & t.reported & t.bin.isna()]
        values = t.groupby(["task", "label", "size", "metric", "seed"], observed=True).value.median()
        found: dict[tuple[Any, ...], dict[int, float]] = {}
        for (*key, seed), number in values.items():
            found.setdefault(tuple(key), {})[seed] = number
        return found

    @functools.cached_property
    def findings(self) -> tuple[Any, ...]:
        """The verdict on each claim."""
        claims = self.experiment.published
        return findings(claims, self.results, self.experiment.header.attempted) if claims else ()

    @functools.cached_property
    def falls(self) -> dict[tuple[str, str], float]:
        """Task and scheme to the share by which the loss still fell, where it did."""
        return falling(self.results)

    @property
    def tasks(self) -> list[str]:
        """The labels of the recorded tasks."""
        return sorted(self.lines) if len(self.table) else []

    def of(self, task: str) -> pd.DataFrame:
        """Return the lines of a task that are about whole examples."""
        return self.lines[task]

    @functools.cache  # noqa: B019
    def schemes(self, task: str) -> list[str]:
        """The labels of the schemes on a task."""
        lines = self.of(task)
        return sorted(lines.label[lines.outcome != BASELINE].unique())

    @functools.cache  # noqa: B019
    def metric(self, task: str) -> str:
        """The metric that tables show of a task."""
        lines = self.of(task)
        return next(iter(lines.metric[lines.shown]))

    @functools.cache  # noqa: B019
    def sizes(self, task: str) -> list[int]:
        """The evaluated sizes of a task, ascending."""
        lines = self.of(task)
        return sorted(int(size) for size in lines["size"][lines.outcome != BASELINE].unique())

    @functools.cache  # noqa: B019
    def trained(self, task: str, label: str = "") -> list[int]:
        """The evaluated sizes within the trained range of a scheme, or of any scheme of the task."""
        lines = self.of(task)
        lines = lines[lines.trained & (lines.label == label)] if label else lines[lines.trained]
        return sorted(int(size) for size in lines["size"].unique())

    def chosen_sizes(self, task: str) -> list[int]:
        """The evaluated sizes nearest below L, 2 L and 4 L of every scheme, where L is its longest trained size."""
        sizes, longest = self.sizes(task), {max(self.trained(task, label), default=0) for label in self.schemes(task)}
        below = [[n for n in sizes if n <= times * end] for end in longest for times in TIMES]
        return sorted({max(of) for of in below if of}) or sizes[: len(TIMES)]

    def seeds(self, task: str, label: str, size: int, metric: str = "", bins=None, rate=None) -> list[float]:
        """Return one value for each seed: the median over the reported rates, or its run at one rate.

        With bins of positions, a run counts by the mean over them.
        """
        metric = metric or self.metric(task)
        if bins is None and rate is None:
            return [*self.by_seed(task, label, size, metric).values()]
        t = self.table[(self.table.task == task) & (self.table.label == label)]
        t = t[(t["size"] == size) & (t.metric == metric) & (t.reported if rate is None else t.lr == rate) & ~t.tuning]
        t = t[t.bin.isna() if bins is None else t.bin.between(*bins)]
        return list(t.groupby(["seed", "lr"]).value.mean().groupby("seed").median())

    def by_seed(self, task: str, label: str, size: int, metric: str = "") -> dict[int, float]:
        """Return the value of each seed: the median over its reported rates."""
        return self._reported.get((task, label, size, metric or self.metric(task)), {})

    def summary(self, *key: Any, **which: Any) -> Summary:
        """Summarize the seeds of a scheme on a task at a size."""
        return summary(self.seeds(*key, **which))

    def baselines(self, task: str, size: int, metric: str = "") -> dict[str, float]:
        """Name to value of every baseline."""
        lines = self.of(task)
        lines = lines[(lines.outcome == BASELINE) & (lines["size"] == size)]
        lines = lines[lines.metric == (metric or self.metric(task))]
        return dict(zip(lines.label, lines.value, strict=True))

    def best_baseline(self, task: str, size: int, metric: str = "") -> tuple[str, float]:
        """Return name and value of the best baseline; an exact least loss is none.

        Raises `LookupError` where the record has none.
        """
        known = {name: number for name, number in self.baselines(task, size, metric).items() if name != "bayes"}
        if not known:
            raise LookupError(f"there is no baseline at {size}")
        best = min if (metric or self.metric(task)) in LOSSES else max
        return best(known.items(), key=lambda pair: pair[1])

    def memory(self, task: str, label: str, size: int) -> float | None:
        """Return how many of the last tokens an exact reader must see to lose as much."""
        return effective_memories(self.results, size).get((task, label))

    def holds(self, task: str, label: str, size: int, metric: str = "") -> bool:
        """Tell whether the median is at least 0.9 at every evaluated size from the trained ones up to this one."""
        sizes = [n for n in self.sizes(task) if min(self.trained(task)) <= n <= size]
        return all(self.summary(task, label, n, metric).median >= HOLDS - 1e-9 for n in sizes)


@functools.cache
def measured(name: str) -> Measured:
    """Read an experiment once."""
    return Measured(name)


def names() -> list[str]:
    """The names of all experiments of this folder."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if path.name[0] != "_")
