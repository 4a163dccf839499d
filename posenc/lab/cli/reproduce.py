"""`posenc reproduce`: published values beside those of our committed records, with n, interval and verdict."""

from __future__ import annotations

import dataclasses
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from posenc.lab.cli.options import Flag
from posenc.lab.cli.output import clean, say, say_json, say_rows
from posenc.lab.results.published import ALL, Order, Published, Reproduction, counted, findings
from posenc.lab.results.results import Results, load
from posenc.lab.spec import committed, settings
from posenc.lab.spec.experiment import Experiment
from posenc.lab.spec.experiment_file import from_file

COLUMNS = ("task", "scheme", "measure", "published", "ours", "n", "floor", "verdict")
RULES = """\
Brackets: the range of our runs if there are fewer than six, else the exact 95% interval of the median; for an order,
that of the paired differences. agrees: the interval, widened by the tolerance (±), meets the published value, or all
differences of an order are above the tolerance. differs: it does not meet it, or all differences are below minus the
tolerance. open: an order between these two cases. not run: there is no record. A published best of several runs is
compared with the best of all our runs at every learning rate; median, brackets and n are those of the chosen rate.
trapezoid: the published mean is over every size of a range, so the evaluated sizes are weighted by the trapezoid rule,
for floors too; otherwise all sizes have equal weight. A verdict is about our setting: if that is smaller than the
published one, "differs" means that the number does not carry over. † marks a published value that a token-blind
baseline (floor) reaches, or misses by at most 0.02."""


@dataclass(frozen=True)
class Reproduce:
    """Every claim of the experiment files: the published value beside ours, with n, interval and verdict.

    Results come from the committed records; nothing is trained. An experiment without a record takes one line, unless
    you name it.
    """

    name: Positional[tuple[str, ...]] = ()
    """Experiments, such as length or experiments/length.py. Default: all."""
    json: Flag = False
    """Print one JSON object: its experiments, each with a row for every published value."""

    def __call__(self) -> int:
        every = committed.files()
        chosen = {_stem(name, every): None for name in self.name} or dict.fromkeys(every)
        reports = [
            (experiment, results, findings(experiment.published, results))
            for experiment, results in _read(every, chosen)
        ]
        if self.json:
            counts = counted(f for *_, found in reports for f in found)
            say_json({"experiments": [_whole(*one) for one in reports], "verdicts": counts})
            return 0
        for experiment, results, found in reports:
            _block(experiment, results, found, bool(self.name))
        counts = counted(f for *_, found in reports for f in found)
        verdicts = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
        at_floor = sum(f.explained for *_, found in reports for f in found)
        say(
            f"Claims, in all: {sum(counts.values())}; {verdicts}. Published values at a floor (†): {at_floor}.\n{RULES}"
        )
        return 0


def _stem(name: str, every: dict[str, Path]) -> str:
    stem = Path(name).stem
    if stem not in every:
        raise settings.unknown("experiment", name, every)
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


def _block(experiment: Experiment, results: Results | None, found: tuple[Reproduction, ...], whole: bool) -> None:
    """Print the claims of one experiment."""
    head = experiment.header
    lines = [f"{experiment.name}: {head.claim}", f"Source: {head.source}"]
    lines += [f"Setting: {head.setting}"] * bool(head.setting)
    if results is None:
        lines.append(f"not run: {len(found)} claims; posenc sweep experiments/{experiment.source}. Cost: {head.cost}")
    elif not found:
        lines.append("It is compared with no published value.")
    say("\n".join(textwrap.fill(line, 118, subsequent_indent="  ", break_on_hyphens=False) for line in lines))
    if found and (results is not None or whole):
        columns = (*COLUMNS, "source") if whole else COLUMNS
        say_rows(columns, [[row[c] for c in columns] for row in map(_shown, found)])
    say("")


def _shown(found: Reproduction) -> dict[str, str]:
    """A finding as the texts of a row."""
    claim, ours = found.published, found.ours
    row = {
        "task": claim.task,
        "scheme": _scheme(claim),
        "measure": _measure(claim),
        "n": str(ours.n) if ours.n else "–",
    }
    row |= {"verdict": found.verdict, "source": claim.source}
    row["floor"] = "–" if found.floor is None else f"{found.floor:.2f}"
    if isinstance(claim, Order):
        row["published"] = "above"
        row["ours"] = f"{ours.median:+.3f} [{ours.low:+.3f}, {ours.high:+.3f}] ±{claim.tolerance:g}" if ours.n else "–"
        return row
    sign = {"is": "", "at least": "≥ ", "at most": "≤ "}[claim.relation]
    of = f"{claim.of} of {claim.runs}" if claim.runs else claim.of
    row["published"] = f"{sign}{claim.value:.3f} ({of}) ±{claim.tolerance:g}{' †' if found.explained else ''}"
    best = "" if found.best is None else f", best of {found.best_of}: {found.best:.3f}"
    row["ours"] = f"{ours.median:.3f} [{ours.low:.3f}–{ours.high:.3f}]{best}" if ours.n else "–"
    return row


def _scheme(claim: Published | Order) -> str:
    return f"{claim.first} over {claim.second}" if isinstance(claim, Order) else claim.scheme


def _measure(claim: Published | Order) -> str:
    what = (
        "reciprocal rank"
        if claim.task == ALL
        else {None: "accuracy", "exact": "whole answers"}.get(claim.metric, claim.metric)
    )
    where = claim.over if isinstance(claim.over, str) else f"size {', '.join(map(str, claim.over))}"
    return f"{what}, {where}" + (f", {claim.weights}" if claim.weights != "equal" else "")


def _whole(experiment: Experiment, results: Results | None, found: tuple[Reproduction, ...]) -> dict[str, Any]:
    """One experiment as JSON."""
    about = dataclasses.asdict(experiment.header)
    rows = []
    for one in found:
        ours = {**dataclasses.asdict(one.ours), "best": one.best, "best_of": one.best_of}
        kind = "order" if isinstance(one.published, Order) else "number"
        rows.append({"kind": kind, **dataclasses.asdict(one.published), "ours": ours if one.ours.n else None})
        rows[-1] |= {"floor": one.floor, "explained": one.explained, "verdict": one.verdict}
    run = results is not None
    code = results.provenance().get("commit", []) if run else []
    return {"name": experiment.name, **about, "recorded": run, "commit": code, "rows": rows}
