"""Commands that read results: `status`, `table`, `compare`, `plot`, `export`. None of them needs jax."""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from posenc.cli.options import File, First, Flag, Settings
from posenc.cli.output import clean, say, say_json, say_rows
from posenc.lab import words
from posenc.lab.experiment import NothingMatches

if TYPE_CHECKING:
    from posenc.lab.results import Results
    from posenc.lab.stats import Comparison

FIGURES = ("length", "heatmap")


@dataclass(frozen=True)
class Status:
    """How far a run is: trials per outcome, and for each group who works on it or what went wrong."""

    run: First
    """A run's name, or its folder."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        from posenc.lab import store

        found = store.status(store.find(self.run))
        if self.json:
            parts = {"counts": found.counts, "groups": found.rows, "outcomes": found.outcomes}
            say_json({"run": self.run, **parts, "problems": found.problems})
            return 0
        said = {o: n for o, n in found.counts.items() if n or o in ("done", "failed", "pending")}
        say(f"{Path(self.run).name}: {', '.join(f'{o} {n}' for o, n in said.items())}")
        rows = [
            (r["task"], r["scheme"], ", ".join(f"{o} {n}" for o, n in r["counts"].items()), r["worker"] or r["error"])
            for r in found.rows
        ]
        say_rows(("task", "scheme", "trials", ""), rows)
        _report(found.problems)
        return 0


@dataclass(frozen=True)
class Tabulate:
    """Accuracy by task, scheme and size, with the number of runs behind every number. It holds no timings."""

    run: First
    """A run, its folder, a bundle, or an experiment file whose record is committed."""
    format: Literal["text", "csv", "md", "latex", "json"] = "text"
    """text for people, the others for programs and papers."""
    json: Flag = False
    """The same as --format json."""
    only: Settings = ()
    """Only these tasks, schemes or seeds: scheme=rope,alibi."""

    def __call__(self) -> int:
        from posenc.show.tables import table

        results = _chosen(results_of(self.run), self.only)
        sys.stdout.write(table(results, "json" if self.json else self.format).rstrip("\n") + "\n")
        _report(results.problems)
        return 0


@dataclass(frozen=True)
class Compare:
    """Two schemes on what both ran, paired by task and seed: the probability that the first is better."""

    run: First
    """A run, its folder, a bundle, or an experiment file whose record is committed."""
    first: Annotated[Positional[str], arg(metavar="A")]
    """A scheme, as tables call it."""
    second: Annotated[Positional[str], arg(metavar="B")]
    """The scheme it is compared with."""
    size: int | None = None
    """At this size; the largest that both have on a task unless given."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        import dataclasses

        from posenc.lab.stats import compare

        results = results_of(self.run)
        found = compare(results, self.first, self.second, self.size)
        if self.json:
            say_json(dataclasses.asdict(found))
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
    """A run, its folder, a bundle, or an experiment file whose record is committed."""
    figure: Annotated[str | None, arg(metavar="NAME,...", help_behavior_hint="")] = None
    """length: accuracy against size; heatmap: task by scheme. All that apply unless given."""
    out: Annotated[File, arg(aliases=["-o"])] = None
    """Folder for the files; the run's own, or experiments/figures, unless given."""

    def __call__(self) -> int:
        wanted = FIGURES if self.figure is None else tuple(words.several(self.figure, "--figure"))
        for name in wanted:
            if name not in FIGURES:
                raise words.unknown("figure", name, FIGURES)
        path = Path(self.run)
        if path.suffix == ".py":
            draw_experiment(path, Path(self.out) if self.out else path.parent / "figures")
        else:
            results = results_of(self.run)
            folder = Path(self.out) if self.out else results.folder or path.parent
            draw(results, wanted, folder)
        return 0


@dataclass(frozen=True)
class Export:
    """Every number of a run: one row per trial and size. Or all its records as one small file to commit."""

    run: First
    """A run, its folder, a bundle, or an experiment file whose record is committed."""
    format: Literal["csv", "json"] = "csv"
    """CSV with a header, or a JSON array of objects."""
    json: Flag = False
    """The same as --format json."""
    bundle: File = None
    """Write the records of a run to this file, which every reading command takes in its place."""

    def __call__(self) -> int:
        from posenc.lab import store
        from posenc.lab.results import COLUMNS
        from posenc.show.files import harmless

        if self.bundle:
            say(str(store.bundle(store.find(self.run), Path(self.bundle))))
            return 0
        results = results_of(self.run)
        if self.json or self.format == "json":
            say_json(results.rows())
        else:
            writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(
                {k: harmless(v) if isinstance(v, str) else v for k, v in row.items()} for row in results.rows()
            )
        _report(results.problems)
        return 0


def results_of(text: str) -> Results:
    """The results that a text names: a run, a folder, a bundle, or an experiment file with a committed record."""
    from posenc.lab.results import load

    path = Path(text)
    if path.suffix != ".py":
        return load(text)
    record = path.parent / "records" / f"{path.stem}.json"
    if not path.is_file():
        raise ValueError(f"There is no experiment file at {text!r}; `posenc list experiments` names those here.")
    if not record.is_file():
        raise ValueError(f"{text!r} has no record at {str(record)!r} yet; `posenc sweep {text}` trains it.")
    return load(record)


def draw(results: Results, wanted: tuple[str, ...], folder: Path) -> None:
    """Draw figures of results into a folder, and say where they are."""
    from posenc.show import figures

    makers = {"length": figures.length_curve, "heatmap": figures.heat_map}
    for name in wanted:
        _written(figures.save(makers[name](results), folder, name, results, figures.caption(results, name)), folder)


def draw_experiment(path: Path, folder: Path) -> None:
    """Draw an experiment's own figure from its committed record."""
    from posenc.lab.experiment import from_file
    from posenc.show import figures

    results, made = results_of(str(path)), from_file(path, yes=True)
    figure = made.figure(results) if made.figure else figures.length_curve(results)
    _written(figures.save(figure, folder, made.name, results, figures.caption(results)), folder)


def experiment_folders() -> list[Path]:
    """Where experiment files are looked for: beside the package, and in the current folder."""
    import posenc

    places = [Path(posenc.__file__).resolve().parent.parent / "experiments", Path("experiments")]
    found = [place for place in places if place.is_dir()]
    return found[1:] if len(found) == 2 and found[0].samefile(found[1]) else found


def _chosen(results: Results, texts: tuple[str, ...]) -> Results:
    """Only some tasks, schemes or seeds. A value that nothing has is refused."""
    if not texts:
        return results
    where: dict[str, Any] = {}
    rows = results.rows()
    for text in texts:
        name, given = words.pair(text, "--only")
        if name not in ("task", "scheme", "family", "seed", "lr"):
            raise words.unknown("column to choose by", name, ("task", "scheme", "family", "seed", "lr"))
        has = {str(row[name]): row[name] for row in rows}
        for value in words.several(given, name):
            if value not in has:
                raise NothingMatches(f"Nothing has {name}={value}; there are {', '.join(has) or 'no results'}.")
        where[name] = tuple(has[v] for v in words.several(given, name))
    return results.only(**where)


def _compared(found: Comparison) -> str:
    """A comparison in three lines, every number with its n and the name of its interval."""
    a, b, gap = found.first, found.second, found.difference
    interval = f" [{found.interval[0]:.2f}, {found.interval[1]:.2f}], 95% Wilson" if found.interval else ""
    p = f"; Wilcoxon p = {found.wilcoxon:.3g}" if found.wilcoxon is not None else ""
    return "\n".join(
        [
            f"P({a} > {b}) = {found.better:.2f}{interval}, n = {found.n} pairs by task and seed, over {found.sizes}",
            f"difference {gap.median:+.3f} in the median of pairs, {gap.kind} [{gap.low:+.3f}, {gap.high:+.3f}]{p}",
            *([] if found.interval else ["Fewer than 6 pairs: no interval and no test; run more seeds."]),
        ]
    )


def _written(files: list[Path], folder: Path) -> None:
    say(f"{folder}: {', '.join(path.name for path in files)}")


def _report(problems: tuple[str, ...]) -> None:
    for problem in problems:
        print(clean(problem), file=sys.stderr)
