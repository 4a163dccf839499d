"""`posenc report`: runs as one file that opens anywhere, once, or again and again while a sweep trains."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from posenc.lab.cli.options import File, Flag, Metric, Settings
from posenc.lab.cli.output import output_path, report, say
from posenc.lab.cli.read import experiment_of, filter_results, stored
from posenc.lab.results.standing import finished
from posenc.lab.store import disk

if TYPE_CHECKING:
    from posenc.lab.report.page import Chapter, Section
    from posenc.lab.results.results import Results
    from posenc.lab.spec.experiment import Experiment

LARGEST = 3 * 2**20
"""Bytes of the largest report."""
PAUSE = 60.0
"""Seconds between two reports of a sweep that trains."""


@dataclass(frozen=True)
class WriteReport:
    """Write one HTML file of runs to send to somebody. It has the question and setting, the table with its floors, and
    figures in which each run shows its seed and numbers. It says what diverged or failed, how rates were chosen, and
    where the numbers come from. It ends with the command that repeats them, and BibTeX. It loads nothing, opens without
    a network, and prints."""

    run: Annotated[Positional[tuple[str, ...]], arg(metavar="RUN")]
    """Runs, folders, bundles, or experiments (names or files) whose records are committed."""
    out: Annotated[File, arg(aliases=["-o"])] = "report.html"
    """The file, NAME.html. A report that is there is written over, and no other file."""
    only: Settings = ()
    """Only these tasks, schemes, families, seeds or rates: scheme=rope,alibi."""
    metric: Metric = None
    watch: Flag = False
    """Write it again every minute, until every trial of the run has a result."""

    def __call__(self) -> int:
        if not self.run:
            raise ValueError("`posenc report` needs a run, its folder, a bundle or an experiment; name one or more.")
        from posenc.lab.report.vega import need_altair

        path = _writable(self.out or "")
        need_altair()
        if not self.watch:
            disk.write(path, self._text().encode())
            say(str(path))
            return 0
        folders = [_folder(run) for run in self.run]
        while True:
            began, ended = time.monotonic(), all(map(finished, folders))
            if ended or any(stored(run).records for run in self.run):
                disk.write(path, self._text(None if ended else round(PAUSE)).encode())
                say(str(path))
            if ended:
                return 0
            time.sleep(max(1.0, PAUSE - (time.monotonic() - began)))

    def _text(self, refresh: int | None = None) -> str:
        """The file, with as much of the figures as its size allows. With `refresh`, runs without a result wait."""
        from posenc.lab.report.page import page
        from posenc.lab.report.sections import citations

        loaded = [(run, *self._load(run)) for run in self.run]
        ready = [(run, results, experiment) for run, results, experiment in loaded if results.records]
        if waiting := [run for run, results, _ in loaded if not results.records and refresh is None]:
            raise ValueError(
                f"No trial of {waiting[0]!r} has a result yet, so there is nothing to report; train it, or see"
                " `posenc status`."
            )
        schemes = {
            str(record.run.get("scheme", record.label)): None for _, results, _ in ready for record in results.records
        }
        last = [citations(list(schemes))]
        for runs, pictures in ((True, True), (False, True), (False, False)):
            parts = [self._part(*each, runs=runs, pictures=pictures) for each in ready]
            if len((text := page(parts, last, refresh)).encode()) <= LARGEST:
                return text
        raise ValueError(
            f"A report of {', '.join(self.run)} would be larger than {LARGEST >> 20} MB even without figures; choose"
            " tasks or schemes by --only, or report fewer runs in one file."
        )

    def _load(self, run: str) -> tuple[Results, Experiment | None]:
        """The results of a run, by the metric requested, in the words of its experiment or of the atlas."""
        from posenc.lab.figures.figures import worded
        from posenc.lab.results.words import Words
        from posenc.lab.spec import atlas
        from posenc.lab.spec.experiment_file import from_file

        path, results = experiment_of(run), stored(run)
        experiment = None if path is None else from_file(path, yes=True)
        if experiment is None:
            words = Words({probe.task: probe.title for probe in atlas.PROBES.values()})
            results = replace(results.shown(self.metric), words=words)
        else:
            results = worded(experiment, results, self.metric)
        report(results.problems)
        return filter_results(results, self.only), experiment

    def _part(
        self, run: str, results: Results, experiment: Experiment | None, *, runs: bool, pictures: bool
    ) -> Chapter:
        from posenc.lab.report import charts, sections
        from posenc.lab.report.page import Chapter, Section, paragraphs

        header = None if experiment is None else experiment.header
        made, missing = charts.charts(results, runs) if pictures else ([], [charts.NONE])
        lines, text = sections.commands(results, header.command if header else "")
        head = [sections.question(results, header), *_claims(experiment, run), sections.table(results)]
        figures = [Section("Figures", paragraphs(missing or [" "], "notes")), *made]
        cost = header.cost if header else ""
        ends = [sections.outcomes(results), sections.learning_rates(results)]
        ends += [sections.origin(results, lines, text, cost)]
        return Chapter(results.name, sections.lead(results, header), [*head, *figures, *ends])


def _writable(text: str) -> Path:
    """The path of the report. Raises `ValueError` unless it can be written, and holds nothing but a report of ours."""
    from posenc.lab.report.page import is_report

    path = output_path(text, "--out", (".html",))
    if not os.access(path.parent, os.W_OK):
        raise ValueError(
            f"--out {text!r} cannot be written: the folder {str(path.parent)!r} is read-only; use another."
        )
    if path.exists() and not (path.is_file() and is_report(path)):
        raise ValueError(
            f"--out {text!r} exists and posenc did not write it; give another name, or move that file away."
        )
    return path


def _folder(run: str) -> Path:
    """The folder of a run that may still train. Raises `ValueError` for anything else, which does not change."""
    folder = None if experiment_of(run) is not None else disk.find(run)
    if folder is None or not (folder / "plan.jsonl").is_file():
        raise ValueError(f"--watch is for runs that train, and {run!r} is not a run folder; leave --watch out.")
    return folder


def _claims(experiment: Experiment | None, run: str) -> list[Section]:
    """The claims of an experiment beside its committed results, with their verdicts."""
    if experiment is None or not experiment.published:
        return []
    from posenc.lab.cli import claims
    from posenc.lab.cli.reproduce import reproduced
    from posenc.lab.report.page import Section, folded, paragraphs, rows

    of_claims = reproduced(experiment, stored(run))
    columns = (*claims.COLUMNS, "reason", "source")
    lines = [[claims.row(finding)[column] for column in columns] for finding in of_claims.findings]
    legend = paragraphs(claims.LEGEND.split("\n\n"), "notes")
    each = folded(f"Each of {len(lines)} claims, and why", rows(columns, lines) + legend)
    counts = paragraphs([claims.tally(of_claims.findings)])
    return [Section("What was claimed, and whether it holds here", counts + each)]
