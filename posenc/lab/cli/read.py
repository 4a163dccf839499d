"""`posenc table`, and what names results in commands that read. No jax."""

from __future__ import annotations

import contextlib
import shlex
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import arg

from posenc.lab.cli import chosen
from posenc.lab.cli.options import First, Flag, Metric, Settings
from posenc.lab.cli.output import columns, report
from posenc.lab.spec import committed, settings
from posenc.lab.spec.committed import experiment_of as experiment_of
from posenc.lab.spec.experiment import NothingMatches
from posenc.lab.spec.experiment_file import from_file
from posenc.language.echo import shorten

if TYPE_CHECKING:
    from posenc.lab.results.results import Results


@dataclass(frozen=True)
class Tabulate:
    """Accuracy by task, scheme and size, with the number of runs behind every number. It holds no timings."""

    run: First
    """A run, its folder, a bundle, or an experiment (its name or file) whose record is committed."""
    format: Literal["text", "csv", "md", "latex", "html", "json"] = "text"
    """text for reading, the others for programs, papers and pages."""
    json: Flag = False
    """Stands for --format json."""
    only: Settings = ()
    """Only these tasks, schemes, families, seeds or rates: scheme=rope,alibi."""
    metric: Metric = None

    sizes: Annotated[str | None, arg(metavar="INT,...", help_behavior_hint="")] = None
    """Only these sizes: 16,32. Default: all."""
    brackets: Annotated[Literal["on", "off"] | None, arg(metavar="{on,off}", help_behavior_hint="")] = None
    """Show the spread of each median in brackets. Default: on."""

    def __call__(self) -> int:
        results = filter_results(results_of(self.run, self.metric), self.only)
        form = "json" if self.json else self.format
        if self.brackets is not None and form == "json":
            raise ValueError("--brackets is for tables, and JSON holds every run; leave it out.")
        say_table(results, form, _sizes(results, self.sizes), self.brackets != "off")
        report(results.problems)
        return 0


def results_of(text: str, metric: str | None = None) -> Results:
    """Return the results that a text names: a run, a folder, a bundle, or an experiment with a committed record. They
    are read by the metric requested, else by that of the experiment, else as `Results.shown` decides."""
    results, path = stored(text), experiment_of(text)
    if metric is None and path is not None:
        return results.shown(from_file(path, yes=True).metric)
    return results.shown(metric)


def stored(text: str) -> Results:
    """Return the results that a text names, each task by its own metric."""
    from posenc.lab.results.results import load

    path = experiment_of(text)
    if path is None:
        return load(text)
    return load(committed.existing_record(path, text))


def check_finished(results: Results, run: str) -> None:
    """Raise `ValueError` where trials are planned and none has a result yet."""
    if results.unfinished and not results.records:
        raise ValueError(
            f"No trial of {run!r} that is reported has a result yet, so there is nothing to draw or compare: results,"
            f" losses too, are recorded when a group of trials ends; `posenc status {shlex.quote(run)}` says how far"
            " they are."
        )


def filter_results(results: Results, texts: tuple[str, ...]) -> Results:
    """Only some tasks, schemes or seeds. Raises if no result has a value, or none has all values."""
    from posenc.lab.results.results import CHOICES

    where: dict[str, Any] = {}
    for text in texts:
        name, choice_text = settings.pair(text, "--only")
        if name not in CHOICES:
            raise settings.unknown("column to choose by", name, CHOICES)
        if name in where:
            raise ValueError(f"--only {name} is given twice; give it once, as {name}=A,B.")
        has = results.choices(name)
        where[name] = tuple(_choice(name, value, has) for value in settings.joined(settings.several(choice_text, name)))
    kept = results.only(**where) if texts else results
    if texts and not kept.records and not kept.unfinished:
        raise NothingMatches(f"Nothing has {' and '.join(texts)}; each of them is there, but not together.")
    return kept


def say_table(
    results: Results, format: str = "text", sizes: tuple[int, ...] | None = None, brackets: bool = True
) -> None:
    """Print the table of results, a text in as many columns as there are: the one place where commands do."""
    from posenc.lab.figures.fitting import Columns
    from posenc.lab.figures.tables import table

    width = columns() if format == "text" else None
    sys.stdout.write(table(results, format, Columns(sizes, brackets, width)).rstrip("\n") + "\n")


def _sizes(results: Results, text: str | None) -> tuple[int, ...] | None:
    """The sizes that a text names. Raises `NothingMatches` for one at which nothing was evaluated."""
    if text is None:
        return None
    wanted, has = settings.value("sizes", text), sorted({row.size for row in results.rows()})
    if missing := [str(n) for n in wanted if n not in has]:
        there = ", ".join(map(str, has)) or "no results"
        raise NothingMatches(f"Nothing was evaluated at size {', '.join(missing)}; there are {there}.")
    return wanted


def _choice(name: str, text: str, has: list[Any]) -> Any:
    """The value of a text: numbers, such as 1e-3 for 0.001, schemes and tasks are compared by what they mean."""
    if name in ("scheme", "task"):
        text = getattr(chosen, name)(text, has)
    for value in has:
        if text == str(value):
            return value
        with contextlib.suppress(ValueError):
            if name in ("seed", "lr") and float(text) == value:
                return value
    raise NothingMatches(f"Nothing has {name}={text}; there are {shorten(text, map(str, has)) or 'no results'}.")


def not_empty(text: str | None, option: str, what: str) -> None:
    if text is not None and not text.strip():
        raise ValueError(f"{option} is empty; give {what}, or leave it out.")
