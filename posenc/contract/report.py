"""Report of a check: one line for each property, and whether all of them hold."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Outcome of one property: True, False, or `None` if it does not apply. It may have a figure and a reason."""

    holds: bool | None
    figure: float | None = None
    reason: str = ""


@dataclasses.dataclass(frozen=True)
class Finding:
    """One property of one scheme. `tag` is its number in the list of invariants, where it has one."""

    name: str
    tag: str
    outcome: Outcome

    def __str__(self) -> str:
        verdict = {True: "holds", False: "FAILS", None: "does not apply"}[self.outcome.holds]
        figure = "" if self.outcome.figure is None else f"{self.outcome.figure:.1e}"
        return f"{self.tag:4} {self.name:40} {verdict:15} {figure:8} {self.outcome.reason}".rstrip()


@dataclasses.dataclass(frozen=True)
class Report:
    """Everything that a check found; prints as a table."""

    scheme: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Tell whether nothing failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[Finding, ...]:
        """What failed."""
        return tuple(f for f in self.findings if f.outcome.holds is False)

    def __str__(self) -> str:
        held = sum(f.outcome.holds is True for f in self.findings)
        apart = sum(f.outcome.holds is None for f in self.findings)
        sums = f"{held} hold, {len(self.failures)} fail, {apart} do not apply"
        return "\n".join([f"{self.scheme}: {sums}", *(f"  {f}" for f in self.findings)])


def at_most(figure: float, bound: float, reason: str = "") -> Outcome:
    """Holds where an error is at most its bound; NaN fails."""
    holds = bool(figure <= bound)
    return Outcome(holds, float(figure), reason or ("" if holds else f"more than {bound:.1e}"))


def absent(reason: str) -> Outcome:
    """Does not apply."""
    return Outcome(None, reason=reason)


def holds_if(condition: bool, reason: str) -> Outcome:
    """Holds, or fails for this reason."""
    return Outcome(True) if condition else Outcome(False, reason=reason)


def error(ours: Any, theirs: Any) -> float:
    """The largest difference between two trees of arrays, relative to the largest number of each where that is above 1.

    Infinite where shapes differ or anything is NaN.
    """
    pairs = list(zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True))
    return max((_apart(np.asarray(a), np.asarray(b)) for a, b in pairs), default=0.0)


def _apart(a: np.ndarray, b: np.ndarray) -> float:
    if a.shape != b.shape:
        return np.inf
    if not a.size:
        return 0.0
    a, b = (x.astype(np.promote_types(x.dtype, np.float32)) if x.dtype.kind != "V" else x for x in (a, b))
    apart = float(np.max(np.abs(a - b)) / max(1.0, float(np.max(np.abs(b)))))
    return np.inf if np.isnan(apart) else apart


def finite(tree: Any) -> bool:
    """Tell whether every number of a tree is finite."""
    return all(bool(np.all(np.isfinite(np.asarray(a, np.float64)))) for a in jax.tree.leaves(tree))


def largest(tree: Any) -> float:
    """The largest number of a tree, whatever its sign; infinite where one is NaN."""
    maximum = max(
        (float(np.max(np.abs(np.asarray(a, np.float64)), initial=0.0)) for a in jax.tree.leaves(tree)), default=0.0
    )
    return np.inf if np.isnan(maximum) else maximum
