"""Outcome of a claim: a verdict, the kind of its reason, and the numbers that it rests on. No jax."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from posenc.lab.results.published import Order, Published
from posenc.lab.results.statistics import Summary

AGREES, DIFFERS, OPEN, BOTH = "agrees", "differs", "open", "both at a baseline"
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
    """Summary of our runs at the chosen rate, or of their paired differences above the floors; n is 0 if nothing was
    run. For `scale="log"` it is of error rates. For an order of rates it is of steps between the rates tried. For an
    order of steps it is of how many more the second took."""
    floor: float | None
    """Share that the best guess gets right, by the metric of the claim: at their sizes if known, or ours."""
    verdict: str
    reason: str = ""
    """Why it is not decided, or how it differs."""
    cause: Cause = ""
    needs: int | None = None
    """How many seeds would decide it, where fewer are the reason."""
    best: float | None = None
    """Best of all our runs, at every rate, for a published best."""
    best_of: int | None = None
    """The number of runs behind that best."""
    p: float | None = None
    """p of an order from six pairs on, by `posenc.lab.results.orders.TEST`."""
    rates: tuple[float, float] | None = None
    """For an order of rates: the largest stable rate of the first and of the second, each the least over seeds."""
    steps: tuple[float, float] | None = None
    """For an order of steps: the median steps of the first and of the second until each has solved the task."""
    better: bool | None = None
    """For a number that differs: True if our runs are better than the published value."""
    unseen: float | None = None
    """For error rates: the rate that an error-free test set still allows, with 95 %."""

    @property
    def explained(self) -> bool:
        """Tell whether a guess meets the published value."""
        claim = self.published
        if not isinstance(claim, Published) or claim.relation != "is" or self.floor is None:
            return False
        return claim.reached_by(self.floor)

    def because(self, verdict: str, cause: Cause, reason: str, needs: int | None = None) -> Reproduction:
        """Return the finding with another verdict, for a reason."""
        return replace(self, verdict=verdict, cause=cause, reason=reason, needs=needs)
