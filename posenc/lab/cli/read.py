"""Commands that read results: `status`, `table`, `compare`, `plot`, `export`. None of them needs jax."""

from __future__ import annotations

import contextlib
import csv
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from posenc.lab.cli.options import File, First, Flag, Settings
from posenc.lab.cli.output import clean, say, say_json, say_rows
from posenc.lab.figures.style import need_matplotlib
from posenc.lab.spec import committed, settings
from posenc.lab.spec.experiment import NothingMatches
from posenc.lab.spec.run import THEN
from posenc.lab.store import disk

if TYPE_CHECKING:
    from posenc.lab.results.results import Results
    from posenc.lab.results.statistics import Comparison

FIGURES = ("length", "heatmap", "error")


@dataclass(frozen=True)
class Status:
    """How far a run is: trials per outcome, and for each group who works on it or what went wrong."""

    run: First
    """A run's name, or its folder."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        from posenc.lab.store import folder as store

        found = store.status(store.find(self.run))
        if self.json:
            parts = {"counts": found.counts, "groups": list(map(vars, found.rows)), "outcomes": found.outcomes}
            say_json({"run": self.run, **parts, "problems": found.problems})
            return 0
        said = {o: n for o, n in found.counts.items() if n or o in ("done", "failed", "pending")}
        say(f"{Path(self.run).name}: {', '.join(f'{o} {n}' for o, n in said.items())}")
        rows = [
            (r.task, r.scheme, ", ".join(f"{o} {n}" for o, n in r.counts.items()), r.worker or r.error)
            for r in found.rows
        ]
        say_rows(("task", "scheme", "trials", ""), rows)
        _report(found.problems)
        return 0


@dataclass(frozen=True)
class Tabulate:
    """Accuracy by task, scheme and size, with the number of runs behind every number. It holds no timings."""

    run: First
    """A run, its folder, a bundle, or an experiment (its name or file) whose record is committed."""
    format: Literal["text", "csv", "md", "latex", "json"] = "text"
    """text for people, the others for programs and papers."""
    json: Flag = False
    """The same as --format json."""
    only: Settings = ()
    """Only these tasks, schemes, families, seeds or rates: scheme=rope,alibi."""

    def __call__(self) -> int:
        from posenc.lab.figures.tables import table

        results = chosen(results_of(self.run), self.only)
        sys.stdout.write(table(results, "json" if self.json else self.format).rstrip("\n") + "\n")
        _report(results.problems)
        return 0


@dataclass(frozen=True)
class Compare:
    """Two schemes on each task that both ran, paired by seed: the probability that the first is better."""

    run: First
    """A run, its folder, a bundle, or an experiment (its name or file) whose record is committed."""
    first: Annotated[Positional[str], arg(metavar="A")]
    """A scheme, as tables call it."""
    second: Annotated[Positional[str], arg(metavar="B")]
    """The scheme it is compared with."""
    size: int | None = None
    """At this size; the mean over all sizes beyond the training range unless given."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        import dataclasses

        from posenc.lab.results.statistics import compare

        results = results_of(self.run)
        found = compare(results, self.first, self.second, self.size)
        if self.json:
            said = [dataclasses.asdict(one) for one in found]
            say_json({"first": self.first, "second": self.second, "tasks": said})
        else:
            say(_compared(found))
        _report(results.problems)
        return 0


@dataclass(frozen=True)
class Plot:
    """Draw the figures of a run, each as SVG, PDF, PNG, with its numbers as CSV and a caption.

    For an experiment file, draw its committed figures again from its committed record, without training.
    """

    run: First
    """A run, its folder, a bundle, or an experiment (its name or file) whose record is committed."""
    figure: Annotated[str | None, arg(metavar="NAME,...", help_behavior_hint="")] = None
    """length: accuracy against size; heatmap: task by scheme; error: the share wrong, on a log axis. Unless given, the
    first, and the second where it applies."""
    out: Annotated[File, arg(aliases=["-o"])] = None
    """Folder for the files. Default: the run's folder; for an experiment, experiments/figures of a checkout, or figures
    here."""

    def __call__(self) -> int:
        wanted = None if self.figure is None else tuple(settings.several(self.figure, "--figure"))
        for name in wanted or ():
            if name not in FIGURES:
                raise settings.unknown("figure", name, FIGURES)
        _some(self.out, "--out", "a folder")
        path = experiment_of(self.run)
        if path is not None and wanted is not None:
            raise ValueError(
                f"{self.run!r} draws its own figure, without --figure; give its record, "
                f"{str(committed.record_of(path))!r}, for {', '.join(wanted)}."
            )
        need_matplotlib()
        if path is not None:
            draw_experiment(path, committed.figures_of(path) if self.out is None else Path(self.out))
        else:
            results = results_of(self.run)
            folder = (results.folder or Path(self.run).parent) if self.out is None else Path(self.out)
            draw(results, wanted or _that_apply(results), folder)
        return 0


@dataclass(frozen=True)
class Export:
    """Every number of a run: one row per trial and size. Or all its records as one small file to commit."""

    run: First
    """A run, its folder, a bundle, or an experiment (its name or file) whose record is committed."""
    format: Literal["csv", "json"] = "csv"
    """CSV with a header, or a JSON array of objects."""
    json: Flag = False
    """The same as --format json."""
    bundle: File = None
    """Write the records of a run to this file, which every reading command takes in its place."""

    def __call__(self) -> int:
        from posenc.lab.figures.files import HEAD, harmless, listed
        from posenc.lab.store import folder as store

        _some(self.bundle, "--bundle", "a file")
        if self.bundle is not None:
            say(str(store.bundle(store.find(self.run), Path(self.bundle))))
            return 0
        results = results_of(self.run)
        if self.json or self.format == "json":
            say_json(listed(results))
        else:
            writer = csv.DictWriter(sys.stdout, HEAD, lineterminator="\n")
            writer.writeheader()
            writer.writerows(
                {k: harmless(v) if isinstance(v, str) else v for k, v in row.items()} for row in listed(results)
            )
        _report(results.problems)
        return 0


def experiment_of(text: str) -> Path | None:
    """The experiment file that a text names. A run or bundle of that name stands before a shipped experiment."""
    if not text.endswith(".py") and (Path(text).exists() or (disk.root() / text).exists()):
        return None
    return committed.find(text)


def results_of(text: str) -> Results:
    """The results that a text names: a run, a folder, a bundle, or an experiment with a committed record."""
    from posenc.lab.results.results import load

    path = experiment_of(text)
    if path is None:
        return load(text)
    record = committed.record_of(path)
    if not path.is_file():
        raise ValueError(f"There is no experiment file at {text!r}; `posenc list experiments` names those here.")
    if not record.is_file():
        raise ValueError(f"{text!r} has no record at {str(record)!r} yet; `posenc sweep {text}` trains it.")
    return load(record)


def draw(results: Results, wanted: tuple[str, ...], folder: Path) -> None:
    """Draw figures of results into a folder, and say where they are."""
    from posenc.lab.figures import errors, figures
    from posenc.lab.figures.panels import Drawing

    _report(results.problems)
    makers = {
        "length": lambda: Drawing(figures.length_curve(results), figures.caption(results)),
        "heatmap": lambda: Drawing(figures.heat_map(results), figures.caption(results, "heatmap")),
        "error": lambda: errors.error_curve(results),
    }
    for name in wanted:
        made = makers[name]()
        _written(figures.save(made.figure, folder, name, results, made.caption), folder)


def draw_experiment(path: Path, folder: Path) -> None:
    """Draw an experiment's own figure from its committed record; one without a caption is told by its axes."""
    from posenc.lab.figures import figures
    from posenc.lab.figures.panel_captions import foreign
    from posenc.lab.figures.panels import Drawing
    from posenc.lab.spec.experiment_file import from_file

    results, made = results_of(str(path)), from_file(path, yes=True)
    _report(results.problems)
    if made.figure is None:
        drawn = Drawing(figures.length_curve(results), figures.caption(results))
    else:
        own = made.figure(results)
        drawn = own if isinstance(own, Drawing) else Drawing(own, foreign(own, results))
    _written(figures.save(drawn.figure, folder, made.name, results, drawn.caption), folder)


def chosen(results: Results, texts: tuple[str, ...]) -> Results:
    """Only some tasks, schemes or seeds. A value that nothing has is refused, and so is what leaves nothing."""
    from posenc.lab.results.results import CHOICES

    where: dict[str, Any] = {}
    for text in texts:
        name, given = settings.pair(text, "--only")
        if name not in CHOICES:
            raise settings.unknown("column to choose by", name, CHOICES)
        if name in where:
            raise ValueError(f"--only {name} is given twice; give it once, as {name}=A,B.")
        has = results.choices(name)
        where[name] = tuple(_choice(name, value, has) for value in _whole(settings.several(given, name)))
    kept = results.only(**where)
    if texts and not kept.records and not kept.unfinished:
        raise NothingMatches(f"Nothing has {' and '.join(texts)}; each of them is there, but not together.")
    return kept


def _whole(values: list[str]) -> list[str]:
    """Values cut at commas, with a label that has one whole again: "rope, then nope"."""
    found: list[str] = []
    for value in values:
        if found and value.startswith(THEN.removeprefix(", ")):
            found[-1] += f", {value}"
        else:
            found.append(value)
    return found


def _choice(name: str, text: str, has: list[Any]) -> Any:
    """The value that a text names: numbers by their value, so that 1e-3 is 0.001."""
    for value in has:
        if text == str(value):
            return value
        with contextlib.suppress(ValueError):
            if name in ("seed", "lr") and float(text) == value:
                return value
    raise NothingMatches(f"Nothing has {name}={text}; there are {', '.join(map(str, has)) or 'no results'}.")


def _compared(found: tuple[Comparison, ...]) -> str:
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
    return "\n".join([*lines, *([f"Fewer than 6 seeds{where}: no interval and no test; run more."] if few else [])])


def _that_apply(results: Results) -> tuple[str, ...]:
    """The figures drawn unless any is named: those that these results have numbers for."""
    from posenc.lab.figures.figures import extrapolates

    return ("length", "heatmap") if extrapolates(results) else ("length",)


def _some(given: str | None, option: str, what: str) -> None:
    if given is not None and not given.strip():
        raise ValueError(f"{option} is empty; give {what}, or leave it out.")


def _written(files: list[Path], folder: Path) -> None:
    say(f"{folder}: {', '.join(path.name for path in files)}")


def _report(problems: tuple[str, ...]) -> None:
    for problem in problems:
        print(clean(problem), file=sys.stderr)
