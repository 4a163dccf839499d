"""How many claims got which verdict, each fact once, and how many orders chance alone would decide. No jax."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from posenc.lab.results.orders import by_chance
from posenc.lab.results.published import ORIGINS
from posenc.lab.results.reproduction import AGREES, DIFFERS, NOT_ATTEMPTED, NOT_RUN, VERDICTS, Reproduction

UNKNOWN = (NOT_RUN, NOT_ATTEMPTED)


def count_verdicts(findings: Iterable[Reproduction]) -> dict[str, dict[str, int]]:
    """How often each verdict was given, for published claims and for our own apart.

    Claims of one fact that got the same verdict count once, and where runs decided on some of them, those without runs
    do not count.
    """
    facts = distinct(findings)
    tallies = {origin: Counter(f.verdict for f in facts if f.published.origin == origin) for origin in ORIGINS}
    return {origin: {verdict: of[verdict] for verdict in VERDICTS} for origin, of in tallies.items()}


def distinct(findings: Iterable[Reproduction]) -> tuple[Reproduction, ...]:
    """One finding for each fact and verdict: the first of them."""
    of: dict[object, dict[str, Reproduction]] = {}
    for number, finding in enumerate(findings):
        claim = finding.published
        of.setdefault((claim.origin, claim.fact) if claim.fact else number, {}).setdefault(finding.verdict, finding)
    return tuple(finding for verdicts in of.values() for finding in _with_runs(verdicts))


def orders_by_chance(findings: Iterable[Reproduction]) -> tuple[int, int, float]:
    """How many orders have pairs of runs enough to be tested, how many of them are decided, and how many chance would
    decide at most if no two of all these schemes differed."""
    tested = [finding for finding in findings if finding.p is not None]
    decided = sum(finding.verdict in (AGREES, DIFFERS) for finding in tested)
    return len(tested), decided, sum(by_chance(finding.ours.n) for finding in tested)


def _with_runs(verdicts: dict[str, Reproduction]) -> list[Reproduction]:
    """Those that rest on runs; else one that was not run, or else not attempted."""
    findings = [finding for verdict, finding in verdicts.items() if verdict not in UNKNOWN]
    return findings or [next(verdicts[verdict] for verdict in UNKNOWN if verdict in verdicts)]
