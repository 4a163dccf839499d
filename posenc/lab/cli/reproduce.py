"""`posenc reproduce`: each claim beside our committed records, with n, interval, verdict and its reason.

Ranks, the answer in words, and two totals, of what was published and of what is ours, follow.
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
from posenc.lab.cli.output import clean, say, say_json, say_rows
from posenc.lab.results.answer import answer
from posenc.lab.results.at_floor import FloorRow, at_floor
from posenc.lab.results.evidence import Evidence
from posenc.lab.results.facts import counted, orders_by_chance
from posenc.lab.results.orders import TEST
from posenc.lab.results.published import ORIGINS, Order, count_seen
from posenc.lab.results.rank_agreement import RankCorrelation, rank_correlations
from posenc.lab.results.reproduction import BOTH, Reproduction
from posenc.lab.results.results import Results, load
from posenc.lab.results.verdicts import findings
from posenc.lab.spec import committed, settings
from posenc.lab.spec.experiment import Experiment
from posenc.lab.spec.experiment_file import from_file


@dataclass(frozen=True)
class Reproduced:
    """One experiment, and what became of its claims."""

    experiment: Experiment
    results: Results | None
    evidence: Evidence | None
    found: tuple[Reproduction, ...]
    ranks: tuple[RankCorrelation, ...]


@dataclass(frozen=True)
class Reproduce:
    """Every claim of the experiment files: the published value beside ours, with n, interval, verdict and its reason.

    Results come from the committed records; nothing is trained. An experiment without a record takes one line, unless
    you name it. What was published and what we predict ourselves are counted apart.
    """

    name: Positional[tuple[str, ...]] = ()
    """Experiments, such as length or experiments/length.py. Default: all."""
    floors: Flag = False
    """Which published numbers are floors: those that a guess gets which ignores the tokens, or their order."""
    legend: Flag = False
    """Print what the columns and the verdicts mean, by which rules."""
    json: Flag = False
    """Print one JSON object: its experiments, each with a row for every claim."""

    def __call__(self) -> int:
        if self.legend:
            say_json({"legend": claims.LEGEND}) if self.json else say(claims.LEGEND)
            return 0
        every = committed.files()
        chosen = {_stem(name, every): None for name in self.name} or dict.fromkeys(every)
        reports = [_report(experiment, results) for experiment, results in _read(every, chosen)]
        if self.floors:
            _floors(at_floor([(r.experiment.published, r.results) for r in reports]), self.json)
            return 0
        found = [one for report in reports for one in report.found]
        counts = counted(found)
        sightings = count_seen(one.published for one in found)
        if self.json:
            tested = dict(zip(("tested", "decided", "by_chance"), orders_by_chance(found), strict=True))
            about = {"verdicts": counts, "orders": tested, "seen": sightings, "test": TEST}
            say_json({"experiments": [_whole(report) for report in reports], **about})
            return 0
        for report in reports:
            _block(report, bool(self.name))
        for origin in ORIGINS:
            say(claims.total(origin, counts[origin], sum(one.published.origin == origin for one in found)))
        say(f"Where published claims were seen: {claims.sightings(sightings)}.")
        _say_filled([claims.why_open(found), claims.chance(found)])
        marked = [one.verdict for one in found if one.explained and one.published.origin == "published"]
        say(f"Published values at a floor (†): {len(marked)}, of which {marked.count(BOTH)} have ours at a floor too.")
        say("`posenc reproduce --legend` says what the columns and the verdicts mean.")
        return 0


def _stem(name: str, every: dict[str, Path]) -> str:
    stem = Path(name).stem
    if stem not in every:
        raise settings.unknown("experiment", name, every, "`posenc list experiments` has all")
    return stem


def _read(every: dict[str, Path], chosen: dict[str, None]) -> list[tuple[Experiment, Results | None]]:
    """The chosen experiments with their committed results; an unreadable one is reported on stderr."""
    found = []
    for stem in chosen:
        try:
            experiment = from_file(every[stem], yes=True)
            record = committed.record_of(every[stem])
            results = load(record) if record.is_file() else None
        except ValueError as error:
            print(clean(error), file=sys.stderr)
            continue
        for problem in results.problems if results else ():
            print(clean(f"{stem}: {problem}"), file=sys.stderr)
        found.append((experiment, results))
    return found


def _report(experiment: Experiment, results: Results | None) -> Reproduced:
    evidence = None if results is None else Evidence(results)
    ranks = () if evidence is None else rank_correlations(experiment.published, evidence)
    found = findings(experiment.published, evidence, experiment.header.attempted)
    return Reproduced(experiment, results, evidence, found, ranks)


def _block(report: Reproduced, named: bool) -> None:
    """Print the claims of one experiment; the answer in words where it was named."""
    experiment, head, found = report.experiment, report.experiment.header, report.found
    lines = [f"{experiment.name}: {head.claim}", f"Source: {head.source}"]
    lines += [f"Setting: {head.setting}"] * bool(head.setting)
    if report.results is None:
        why = "not run" if head.attempted else "not attempted here"
        lines.append(f"{why}: {len(found)} claims; posenc sweep experiments/{experiment.source}. Cost: {head.cost}")
    elif not found:
        lines.append("It is compared with no published value.")
    _say_filled(lines)
    if found and (report.results is not None or named):
        columns = (*claims.COLUMNS, "reason", "source") if named else claims.COLUMNS
        say_rows(columns, [[row[c] for c in columns] for row in map(claims.row, found)])
    _say_filled([claims.ranked(report.ranks)] * bool(report.ranks))
    _say_filled([answer(found, report.evidence)] if named else [])
    say("")


def _say_filled(lines: list[str]) -> None:
    """Print sentences, each from a line of its own, broken at the width of a page."""
    filled = (textwrap.fill(line, 118, subsequent_indent="  ", break_on_hyphens=False) for line in lines if line)
    if text := "\n".join(filled):
        say(text)


def _floors(rows: tuple[FloorRow, ...], json: bool) -> None:
    """Print which published numbers are floors."""
    if json:
        say_json({"floors": [dataclasses.asdict(row) for row in rows]})
        return
    say_rows(claims.FLOOR_COLUMNS, claims.floor_rows(rows))
    say(claims.FLOOR_RULES)


def _whole(report: Reproduced) -> dict[str, Any]:
    """One experiment as JSON."""
    rows = []
    for one in report.found:
        ours = {**dataclasses.asdict(one.ours), "best": one.best, "best_of": one.best_of}
        kind = "order" if isinstance(one.published, Order) else "number"
        rows.append({"kind": kind, **dataclasses.asdict(one.published), "ours": ours if one.ours.n else None})
        rows[-1] |= {"floor": one.floor, "explained": one.explained, "verdict": one.verdict, "reason": one.reason}
        rows[-1] |= {"cause": one.cause, "needs": one.needs, "p": one.p, "rates": one.rates, "unseen": one.unseen}
    code = report.results.provenance().get("commit", []) if report.results else []
    about = {"name": report.experiment.name, **dataclasses.asdict(report.experiment.header)}
    about |= {"recorded": report.results is not None, "commit": code, "rows": rows}
    ranks = [dataclasses.asdict(one) for one in report.ranks]
    return {**about, "rank_correlations": ranks, "answer": answer(report.found, report.evidence)}
