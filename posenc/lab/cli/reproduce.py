"""`posenc reproduce`: each claim beside our committed records, with n, interval, verdict and its reason.

Two totals follow: of published claims and of our own.
"""

from __future__ import annotations

import dataclasses
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from posenc.lab.cli import claims
from posenc.lab.cli.options import Flag
from posenc.lab.cli.output import clean, say, say_json
from posenc.lab.results.orders import TEST
from posenc.lab.results.published import ORIGINS, Order, count_seen
from posenc.lab.results.reproduction import BOTH, Reproduction
from posenc.lab.results.results import Results, load
from posenc.lab.results.verdicts import count_verdicts, findings, orders_by_chance
from posenc.lab.spec import committed, settings
from posenc.lab.spec.experiment import Experiment
from posenc.lab.spec.experiment_file import from_file


@dataclass(frozen=True)
class Reproduced:
    """One experiment, and what became of its claims."""

    experiment: Experiment
    results: Results | None
    findings: tuple[Reproduction, ...]


@dataclass(frozen=True)
class Reproduce:
    """Every claim of the experiment files: the published value beside ours, with n, interval, verdict and its reason.

    Results come from the committed records; nothing is trained. An experiment without a record takes one line, unless
    you name it. What was published and what we predict ourselves are counted apart.
    """

    name: Positional[tuple[str, ...]] = ()
    """Experiments, such as length or experiments/length.py. Default: all."""
    legend: Flag = False
    """Print what the columns and the verdicts mean, by which rules."""
    json: Flag = False
    """Print one JSON object: its experiments, each with a row for every claim."""

    def __call__(self) -> int:
        if self.legend:
            say_json({"legend": claims.LEGEND}) if self.json else say(claims.LEGEND)
            return 0
        files = committed.files()
        stems = {_stem(name, files): None for name in self.name} or dict.fromkeys(files)
        reports = [reproduced(experiment, results) for experiment, results in _read(files, stems)]
        all_findings = [finding for report in reports for finding in report.findings]
        counts = count_verdicts(all_findings)
        sightings = count_seen(finding.published for finding in all_findings)
        if self.json:
            tested = dict(zip(("tested", "decided", "by_chance"), orders_by_chance(all_findings), strict=True))
            totals = {"verdicts": counts, "orders": tested, "seen": sightings, "test": TEST}
            say_json({"experiments": [_as_json(report) for report in reports], **totals})
            return 0
        for report in reports:
            _block(report, bool(self.name))
        of = {origin: sum(finding.published.origin == origin for finding in all_findings) for origin in ORIGINS}
        _say_filled([claims.total(origin, counts[origin], number) for origin, number in of.items()])
        say(f"Published claims were checked against: {claims.sightings(sightings)}.")
        _say_filled([claims.why_open(all_findings), claims.chance(all_findings)])
        published = [finding for finding in all_findings if finding.published.origin == "published"]
        marked = [finding.verdict for finding in published if finding.explained]
        both = marked.count(BOTH)
        say(f"Published values at a baseline (†): {len(marked)}; at {both} of them ours is at a baseline too.")
        say("`posenc reproduce --legend` says what the columns and the verdicts mean.")
        return 0


def _stem(name: str, files: dict[str, Path]) -> str:
    stem = Path(name).stem
    if stem not in files:
        raise settings.unknown("experiment", name, files, "`posenc list experiments` has all")
    return stem


def _read(files: dict[str, Path], stems: dict[str, None]) -> list[tuple[Experiment, Results | None]]:
    """The chosen experiments with their committed results; an unreadable one is reported on stderr."""
    pairs = []
    for stem in stems:
        try:
            experiment = from_file(files[stem], yes=True)
            record = committed.record_of(files[stem])
            results = load(record) if record.is_file() else None
        except ValueError as error:
            print(clean(error), file=sys.stderr)
            continue
        for problem in results.problems if results else ():
            print(clean(f"{stem}: {problem}"), file=sys.stderr)
        pairs.append((experiment, results))
    return pairs


def reproduced(experiment: Experiment, results: Results | None) -> Reproduced:
    """Return the outcome of the claims of an experiment, by its committed results."""
    return Reproduced(experiment, results, findings(experiment.published, results, experiment.header.attempted))


def _block(report: Reproduced, named: bool) -> None:
    """Print the claims of one experiment, with reasons and sources if it was named."""
    experiment, head, all_findings = report.experiment, report.experiment.header, report.findings
    lines = [f"{experiment.name}: {head.claim}", f"Source: {head.source}"]
    lines += [f"Setting: {head.setting}"] * bool(head.setting)
    if report.results is None:
        why = "not run" if head.attempted else "not attempted here"
        command = f"posenc sweep experiments/{experiment.source}"
        lines.append(f"{why}: {len(all_findings)} claims; {command}. Cost: {head.cost}")
    elif not all_findings:
        lines.append("It is compared with no published value.")
    _say_filled(lines)
    if all_findings and (report.results is not None or named):
        blocks = ("\n".join(claims.block(finding, named)) for finding in all_findings)
        say("\n" * named + ("\n\n" if named else "\n").join(blocks))
    say("")


def _say_filled(lines: list[str]) -> None:
    """Print sentences, each from a line of its own, broken at the width of a page."""
    filled = (
        textwrap.fill(line, claims.WIDTH, subsequent_indent="  ", break_on_hyphens=False) for line in lines if line
    )
    if text := "\n".join(filled):
        say(text)


def _as_json(report: Reproduced) -> dict[str, Any]:
    """One experiment as JSON."""
    rows = []
    for finding in report.findings:
        ours = {**dataclasses.asdict(finding.ours), "best": finding.best, "best_of": finding.best_of}
        kind = "order" if isinstance(finding.published, Order) else "number"
        rows.append({"kind": kind, **dataclasses.asdict(finding.published), "ours": ours if finding.ours.n else None})
        names = ("floor", "explained", "verdict", "reason", "cause", "needs", "p", "rates", "steps", "unseen")
        rows[-1] |= {name: getattr(finding, name) for name in names}
    code = report.results.provenance().get("commit", []) if report.results else []
    fields = {"name": report.experiment.name, **dataclasses.asdict(report.experiment.header)}
    return fields | {"recorded": report.results is not None, "commit": code, "rows": rows}
