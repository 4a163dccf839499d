"""`posenc plot`: the figures of a run or of an experiment, as SVG, PDF and PNG, with their numbers and a caption."""

from __future__ import annotations

import contextlib
import pkgutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import arg

from posenc.lab.cli.options import METRICS, First, Measured
from posenc.lab.cli.output import report, say
from posenc.lab.cli.read import check_finished, experiment_of, not_empty, stored
from posenc.lab.figures import venues
from posenc.lab.figures.style import need_matplotlib
from posenc.lab.metrics import LOSSES
from posenc.lab.spec import committed, settings

if TYPE_CHECKING:
    from posenc.lab.figures.panels import Drawing
    from posenc.lab.results.results import Results

FIGURES = {
    "length": "posenc.lab.figures.figures:length",
    "heatmap": "posenc.lab.figures.rows:heat",
    "error": "posenc.lab.figures.figures:error_curve",
    "place": "posenc.lab.figures.curves:place_curve",
    "excess": "posenc.lab.figures.curves:excess_curve",
    "curves": "posenc.lab.figures.curves:curves",
    "steps": "posenc.lab.figures.curves:steps",
    "seeds": "posenc.lab.figures.rows:solved_seeds",
}
"""Figure to the function that draws it: results to a `Drawing`. Loaded when needed, so that help starts at once."""
FALLING = ("length", "place", "excess", "curves", "steps")
"""The figures that can show a loss; the others count what is right."""
Venue = Literal["neurips", "icml", "iclr", "acl"]
Width = Literal["column", "text"]
Size = tuple[Venue, Width] | None


@dataclass(frozen=True)
class Plot:
    """Draw the figures of a run, each as SVG, PDF and PNG, with its numbers as CSV and a caption.

    For an experiment, draw its own figure from its committed record, without training, or with --figure others, which
    are called EXPERIMENT.NAME.
    """

    run: First
    """A run, its folder, a bundle, or an experiment (its name or file) whose record is committed."""
    figure: Annotated[str | None, arg(metavar="NAME,...", help_behavior_hint="")] = None
    """Figures to draw. length is accuracy against size; heatmap is task by scheme; error is the error rate on a log
    axis. place is accuracy by position in the text; excess is the loss above the exact least one by position. curves is
    the loss along training; steps is the number of steps until it is small; seeds counts how many solve each size.
    Default: length, and heatmap if sizes beyond the training range were measured."""
    metric: Annotated[Measured, arg(metavar=METRICS, help_behavior_hint="")] = None
    """The share of answer tokens, whole answers, last answer tokens, or answer tokens beyond training that are right.
    Or the mean loss in nats or bits. Default: as tables show it. For answers at every token that is beyond training, or
    last if records lack it."""
    venue: Annotated[Venue | None, arg(metavar="{neurips,icml,iclr,acl}", help_behavior_hint="")] = None
    """Draw in the size and the fonts of a paper of this venue; files are then called NAME.VENUE-WIDTH."""
    width: Annotated[Width | None, arg(metavar="{column,text}", help_behavior_hint="")] = None
    """With --venue: as wide as one column (the default) or as the whole text."""
    out: Annotated[str | None, arg(metavar="FOLDER", aliases=["-o"], help_behavior_hint="")] = None
    """Folder for the files. Default is the run's folder; for an experiment, experiments/figures of a checkout, or
    figures here."""

    def __call__(self) -> int:
        wanted = None if self.figure is None else tuple(settings.several(self.figure, "--figure"))
        for name in wanted or ():
            if name not in FIGURES:
                raise settings.unknown("figure", name, FIGURES)
        not_empty(self.out, "--out", "a folder")
        if self.out is not None and Path(self.out).suffix in (".svg", ".pdf", ".png"):
            raise ValueError(
                f"--out is {self.out!r}, the name of one file, and a figure is written in several formats; give a"
                " folder."
            )
        if self.width is not None and self.venue is None:
            raise ValueError("--width needs --venue, which decides how wide a column is; give both, or neither.")
        _check_shares({self.metric}, wanted)
        size = None if self.venue is None else (self.venue, self.width or "column")
        path = experiment_of(self.run)
        if path is not None and self.metric is not None and wanted is None:
            raise ValueError(
                f"{self.run!r} draws its own figure, by the metric of its claim; give --figure too, such as"
                f" `--figure length --metric {self.metric}`."
            )
        need_matplotlib()
        with venues.drawn_for(*size) if size else contextlib.nullcontext():
            self._draw(path, wanted, size)
        return 0

    def _draw(self, path: Path | None, wanted: tuple[str, ...] | None, size: Size) -> None:
        if path is not None:
            folder = committed.figures_of(path) if self.out is None else Path(self.out)
            draw_experiment(path, folder, size, wanted, self.metric)
        else:
            results = stored(self.run).shown(self.metric)
            check_finished(results, self.run)
            folder = (results.folder or Path(self.run).parent) if self.out is None else Path(self.out)
            metrics = {record.task.metric for record in results.records}
            _check_shares(metrics, wanted)
            usual = (FALLING[:1] if self.metric else FALLING[:2]) if metrics & LOSSES.keys() else _applicable(results)
            draw(results, wanted or usual, folder, size)


def _check_shares(metrics: Collection[str | None], wanted: Collection[str] | None) -> None:
    """Refuse figures of what is right where a metric is a loss."""
    losses = sorted(LOSSES.keys() & metrics)
    if losses and (shares := [name for name in wanted or () if name not in FALLING]):
        raise ValueError(
            f"--metric {losses[0]} is a loss, and --figure {shares[0]} shows what is right; take"
            f" {', '.join(FALLING)}, or another --metric."
        )


def draw(
    results: Results,
    wanted: tuple[str, ...],
    folder: Path,
    size: Size = None,
    of: str = "",
) -> None:
    """Draw figures of results into a folder, each called by its name after that of what it is `of`, and print where
    they are."""
    report(results.problems)
    for name in wanted:
        drawing = pkgutil.resolve_name(FIGURES[name])(results)
        _save(drawing, folder, f"{of}.{name}" if of else name, results, size)


def draw_experiment(
    path: Path,
    folder: Path,
    size: Size = None,
    wanted: tuple[str, ...] | None = None,
    metric: str | None = None,
) -> None:
    """Draw figures from an experiment's committed record, in its words; by default its own, which has a caption of its
    axes where it gives none."""
    from posenc.lab.figures.figures import drawing, worded
    from posenc.lab.spec.experiment_file import from_file

    results, experiment = stored(str(path)), from_file(path, yes=True)
    if wanted is not None:
        draw(worded(experiment, results, metric), wanted, folder, size, experiment.name)
        return
    report(results.problems)
    own_drawing, results = drawing(experiment, results)
    _save(own_drawing, folder, experiment.name, results, size)


def _save(drawing: Drawing, folder: Path, name: str, results: Results, size: Size) -> None:
    """Write a figure, in the size of a venue if there is one, and print its files."""
    from posenc.lab.figures import files

    if size is not None:
        venues.check_room(drawing.figure, size[1])
        name = f"{name}.{'-'.join(size)}"
    written = files.save(drawing.figure, folder, name, results, drawing.caption, drawing.rows)
    say(f"{folder}: {', '.join(path.name for path in written)}")


def _applicable(results: Results) -> tuple[str, ...]:
    """The figures drawn by default: those for which these results have numbers."""
    from posenc.lab.figures.across import fit_in
    from posenc.lab.figures.figures import extrapolates
    from posenc.lab.results.statistics import cells

    beyond = extrapolates(results)
    length = ("length",) if fit_in(cells(results)) or not beyond else ()
    return (*length, "heatmap") if beyond else length
