"""How many claims got which verdict, each fact once, and how many orders chance alone would decide. No jax."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from posenc.lab.results.orders import by_chance
from posenc.lab.results.published import ORIGINS
from posenc.lab.results.reproduction import AGREES, DIFFERS, NOT_ATTEMPTED, NOT_RUN, VERDICTS, Reproduction

UNKNOWN = (NOT_RUN, NOT_ATTEMPTED)


def counted(found: Iterable[Reproduction]) -> dict[str, dict[str, int]]:
    """How often each verdict was given, for published claims and for our own apart.

    Claims of one fact that got the same verdict count once, and where runs decided on some of them, those without runs
    do not count.
    """
    facts = distinct(found)
    given = {origin: Counter(f.verdict for f in facts if f.published.origin == origin) for origin in ORIGINS}
    return {origin: {verdict: of[verdict] for verdict in VERDICTS} for origin, of in given.items()}


def distinct(found: Iterable[Reproduction]) -> tuple[Reproduction, ...]:
    """One finding for each fact and verdict: the first of them."""
    of: dict[object, dict[str, Reproduction]] = {}
    for number, one in enumerate(found):
        claim = one.published
        of.setdefault((claim.origin, claim.fact) if claim.fact else number, {}).setdefault(one.verdict, one)
    return tuple(one for verdicts in of.values() for one in _known(verdicts))


def orders_by_chance(found: Iterable[Reproduction]) -> tuple[int, int, float]:
    """How many orders have pairs of runs enough to be tested, how many of them are decided, and how many chance would
    decide at most if no two of all these schemes differed."""
    tested = [one for one in found if one.p is not None]
    decided = sum(one.verdict in (AGREES, DIFFERS) for one in tested)
    return len(tested), decided, sum(by_chance(one.ours.n) for one in tested)


def _known(verdicts: dict[str, Reproduction]) -> list[Reproduction]:
    """Those that rest on runs; else one that was not run, or else not attempted."""
    known = [one for verdict, one in verdicts.items() if verdict not in UNKNOWN]
    return known or [next(verdicts[verdict] for verdict in UNKNOWN if verdict in verdicts)]
