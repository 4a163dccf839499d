"""What became of a claim: a verdict, the kind of its reason, and the numbers that it rests on. No jax."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from posenc.lab.results.published import Order, Published
from posenc.lab.results.statistics import Summary

AGREES, DIFFERS, OPEN, BOTH = "agrees", "differs", "open", "both at a floor"
UNINFORMATIVE, NOT_RUN, NOT_ATTEMPTED = "uninformative", "not run", "not attempted"
VERDICTS = (AGREES, DIFFERS, OPEN, BOTH, UNINFORMATIVE, NOT_RUN, NOT_ATTEMPTED)
Cause = Literal[
    "",
    "few",
    "undecided",
    "equal",
    "ceiling",
    "wide",
    "unresolved",
    "floor",
    "unlearned",
    "untrained",
    "uncounted",
    "missing",
    "unshared",
    "control",
    "apart",
    "cost",
]
"""The kind of a reason."""


@dataclass(frozen=True)
class Reproduction:
    """A claim, what we found, and whether they agree."""

    published: Published | Order
    ours: Summary
    """Of our runs at the chosen rate, or of their paired differences above the floors; n is 0 where nothing was run. Of
    a claim with `scale="log"` it is of error rates, of an order of rates it is of steps between the rates tried, and of
    an order of steps it is of how many more the second took."""
    floor: float | None
    """What the best guess gets right, by the metric of the claim: at their sizes if known, or ours."""
    verdict: str
    reason: str = ""
    """Why it is not decided, or how it differs."""
    cause: Cause = ""
    needs: int | None = None
    """How many seeds would decide it, where fewer are the reason."""
    best: float | None = None
    """Of all our runs, at every rate: what is held against a published best."""
    best_of: int | None = None
    """Of how many runs that is the best."""
    p: float | None = None
    """Of an order from six pairs on, by `posenc.lab.results.orders.TEST`."""
    rates: tuple[float, float] | None = None
    """Of an order of rates: the largest stable rate of the first and of the second, each the least over seeds."""
    steps: tuple[float, float] | None = None
    """Of an order of steps: the median steps of the first and of the second until each has solved the task."""
    better: bool | None = None
    """Of a number that differs: whether our runs are better than what was published."""
    unseen: float | None = None
    """Of error rates: what no error among so many test examples leaves possible, with 95 %."""

    @property
    def explained(self) -> bool:
        """Whether a guess meets what was published."""
        claim = self.published
        if not isinstance(claim, Published) or claim.relation != "is" or self.floor is None:
            return False
        return claim.reached_by(self.floor)

    def because(self, verdict: str, cause: Cause, reason: str, needs: int | None = None) -> Reproduction:
        """The same finding with another verdict, for a reason."""
        return replace(self, verdict=verdict, cause=cause, reason=reason, needs=needs)
