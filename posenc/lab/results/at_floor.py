"""Which published numbers are floors: those that a token-blind guess, or one from the bag of tokens, gets as well.

The floors are those at the sizes of the publication where the claim gives them, and those of our record elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from posenc.lab.results.evidence import Evidence
from posenc.lab.results.published import ALL, EPSILON, SEEN, Measure, Order, Published, Seen
from posenc.lab.results.results import Results, grouped

POINT = 0.01
"""A number at most one point above a floor counts as the floor: a best of several runs lies above their mean."""
DECIMAL = 0.001
"""So near to the bag a number equals it, as far as papers write decimals."""


@dataclass(frozen=True)
class FloorRow:
    """The published numbers of one task, and which of them are floors."""

    source: str
    seen: tuple[Seen, ...]
    """Where the numbers were seen."""
    task: str
    floor: float
    """The highest of all floors."""
    bag: float | None
    """What the row's most frequent token gets right, where answers are tokens of the row."""
    of: int
    """How many numbers were published for the task."""
    cells: tuple[tuple[str, float], ...]
    """The schemes whose numbers are at most `POINT` above the highest floor, with the numbers."""
    bags: tuple[str, ...]
    """The schemes whose number is that of the bag."""


def at_floor(experiments: Sequence[tuple[Sequence[Published | Order], Results | None]]) -> tuple[FloorRow, ...]:
    """A row for each task of each publication whose floor is known, also of those without a number at it.

    Where several experiments hold numbers of one publication and task, that with most of them counts.
    """
    rows: dict[tuple[str, str], FloorRow] = {}
    for claims, results in experiments:
        evidence = None if results is None else Evidence(results)
        columns = grouped(((claim.source, claim.measure), claim) for claim in _numbers(claims))
        for (source, measure), column in columns.items():
            row = _row(source, measure, column, evidence)
            before = rows.get((source, measure.task))
            if row is not None and (before is None or row.of > before.of):
                rows[source, measure.task] = row
    return tuple(rows.values())


def _numbers(claims: Sequence[Published | Order]) -> list[Published]:
    """The published shares right of a task; bounds, error rates and our own claims are left out."""
    numbers = [claim for claim in claims if isinstance(claim, Published) and claim.relation == "is"]
    return [n for n in numbers if n.origin == "published" and n.task != ALL and n.scale == "share"]


def _row(source: str, measure: Measure, column: Sequence[Published], evidence: Evidence | None) -> FloorRow | None:
    floors = evidence.floors(evidence.settled(measure, [claim.scheme for claim in column])) if evidence else {}
    highest = column[0].floor if column[0].floor is not None else max(floors.values(), default=None)
    bag = column[0].bag if column[0].bag is not None else floors.get("bag")
    if highest is None:
        return None
    cells = tuple((claim.scheme, claim.value) for claim in column if claim.value <= highest + POINT + EPSILON)
    bags = tuple(c.scheme for c in column if bag is not None and abs(c.value - bag) <= DECIMAL + EPSILON)
    places = tuple(place for place in SEEN if place in {claim.seen for claim in column})
    return FloorRow(source, places, measure.task, highest, bag, len(column), cells, bags)
