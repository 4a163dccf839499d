"""What the committed records say of an ability: how far above the highest floor each scheme is at about 2 L. No jax.

L is the longest size trained on. A score is (share right - floor) / (1 - floor), of the median over runs, cut to 0..1.
It counts what tells how far a scheme comes: places beyond training, or in older records the last token, where every
token is answered, and else the whole answer.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from posenc.lab.results.floors import best_floor
from posenc.lab.results.learned import bar
from posenc.lab.results.losses import falling
from posenc.lab.results.rate_gaps import by_rate, rate_gap
from posenc.lab.results.results import Results, load
from posenc.lab.results.statistics import HOLDS, Summary, TableCell, cells, summary
from posenc.lab.results.words import label_parts
from posenc.lab.spec import committed
from posenc.lab.spec.abilities import ability_of, answers_each_token
from posenc.lab.store.records import labels
from posenc.lab.store.schema import TaskRecord
from posenc.language.modules import declarations

NEAR = (1.5, 3.0)
"""Sizes from so many to so many times L are about 2 L."""


@dataclass(frozen=True)
class AbilityScore:
    """A scheme on a task of an ability, as one experiment has it."""

    ability: str
    experiment: str
    task: str
    scheme: str
    """Its text, without the settings in which runs of an experiment differ."""
    settings: tuple[str, ...]
    """Those, as "attention=additive"."""
    model: str
    trained: tuple[int, int]
    size: int
    """The size nearest to 2 L."""
    metric: str
    right: Summary
    """The share right at that size, over runs."""
    floor: float | None
    """The highest floor there; None where none is known."""
    score: float | None
    """None where the floor leaves nothing to learn, or is not known."""
    trained_right: float | None
    """The least median at a size trained on; None where none of these was evaluated."""
    falling: bool
    """Whether the loss still fell when training ended."""
    by_rate: Mapping[float, float]
    """Rate to the median at that size, of rates that tie in validation and differ there; empty where none do."""

    @property
    def learned(self) -> bool | None:
        """Whether every size trained on was learned, without which a score beyond them says nothing of reach."""
        return None if self.trained_right is None else self.trained_right >= bar(self.metric, HOLDS)

    @property
    def schemes(self) -> set[str]:
        """The schemes of ours in its text: of "pi(factor=2.0), trained with rope" pi and rope."""
        return schemes_in(self.scheme)


def ability_scores(ability: str, records: Mapping[str, Results] | None = None) -> list[AbilityScore]:
    """The scores of all schemes on the tasks of an ability, the best of a task first; from every committed record, or
    from these, by experiment."""
    if records is None:
        records = {path.stem: load(committed.record_of(path)) for path in recorded_experiments()}
    scores = [score for name, results in records.items() for score in _scores(name, results, ability)]
    return sorted(scores, key=lambda s: (s.task, s.experiment, s.trained, s.size, -(s.score or 0), s.scheme, s.model))


def _telling(results: Results) -> Results:
    """Results by the metric that tells most, as figures show them; but a text that is written into slots after the
    input counts as a whole in records of any age, since its last token says nothing of the others."""
    written = {
        record.task.label: "accuracy"
        for record in results.shown().records
        if record.task.metric == "last" and not answers_each_token(record.task.label)
    }
    return results.shown(written)


def _scores(experiment: str, results: Results, ability: str) -> Iterator[AbilityScore]:
    of_ability = tuple(task for task in results.choices("task") if ability_of(task) == ability)
    results = _telling(results.only(task=of_ability))
    table, tasks, models = cells(results), results.tasks(), results.models()
    fell = falling(results, table)
    for cell in table:
        key = (cell.task, cell.scheme)
        if key not in models or (size := _near(cell)) is None:
            continue
        scheme, varied = label_parts(cell.scheme)
        settings = tuple(f"{k}={v}" for k, v in varied.items() if (k, v) != ("model", models[key]))
        right, (floor, score) = summary(cell.values[size]), _above(tasks[cell.task], cell, size)
        inside = min((summary(cell.values[n]).median for n in cell.inside), default=None)
        identity = (ability, experiment, cell.task, scheme, settings, models[key], cell.trained, size, cell.metric)
        gap = rate_gap(cell)
        rates = {} if gap is None or size not in gap.sizes else by_rate(cell.runs[size], cell.reported)
        medians = {rate: runs.median for rate, runs in rates.items()}
        yield AbilityScore(*identity, right, floor, score, inside, key in fell, medians)


def _near(cell: TableCell) -> int | None:
    """The measured size nearest to twice the longest trained on; None where none is near."""
    longest = cell.trained[1]
    sizes = [n for n in cell.beyond if NEAR[0] <= n / longest <= NEAR[1] and cell.values[n]]
    return min(sizes, key=lambda n: abs(math.log(n / (2 * longest))), default=None)


def _above(task: TaskRecord, cell: TableCell, size: int) -> tuple[float | None, float | None]:
    """The highest floor at a size, and how far above it the median is, of what is left."""
    named = best_floor(task, [size])
    if named is None or named[1] >= 1:
        return (named and named[1]), None
    score = (summary(cell.values[size]).median - named[1]) / (1 - named[1])
    return named[1], min(max(score, 0.0), 1.0)


def recorded_experiments() -> list[Path]:
    """The experiment files that have a committed record, in the order of their names."""
    return sorted((p for p in committed.files().values() if committed.record_of(p).is_file()), key=lambda p: p.stem)


def experiments_with_task(name: str) -> list[str]:
    """The experiments whose record has runs on a task, with any settings."""
    return _experiments(lambda scheme, task: task.partition("(")[0] == name)


def experiments_with_schemes(names: Collection[str]) -> list[str]:
    """The experiments whose record has runs of a scheme, alone or in a sum, with any settings; of several names, those
    in which these are together."""
    return _experiments(lambda scheme, task: set(names) <= words_in(scheme))


def _experiments(wanted: Callable[[str, str], bool]) -> list[str]:
    paths = recorded_experiments()
    return [path.stem for path in paths if any(itertools.starmap(wanted, labels(committed.record_of(path))))]


def schemes_in(label: str) -> set[str]:
    """The schemes of ours that a label names: of "pi(factor=2.0), trained with rope" pi and rope."""
    return words_in(label) & set(declarations("schemes"))


def words_in(label: str) -> set[str]:
    """The words of a label outside quotes, since the value of a setting may be called like a scheme."""
    return set(re.findall(r"\w+", re.sub(r"'[^']*'", "", label)))
