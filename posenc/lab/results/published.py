"""Claims: what was published, or what we predict, as data beside the experiment that tests it. No jax.

An experiment file holds `published = [Published(...), Order(...)]`. Each claim says where it comes from: a publication
by its `source`, or with `origin="ours"` our own prediction or arithmetic by its reason. The two are never counted
together, since agreement with ourselves shows nothing about a publication. A published claim also says where it was
`seen`, since a number from memory may be wrong. `posenc.lab.results.verdicts` judges claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from posenc.lab.metrics import GAIN
from posenc.lab.results.sizes import Rule, check_rule
from posenc.language.echo import echoed

ALL = "all tasks"
"""Stands for a task: the mean reciprocal rank over all tasks of an experiment."""
Origin = Literal["published", "ours"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
Seen = Literal["paper", "copy", "memory"]
SEEN: tuple[Seen, ...] = get_args(Seen)
Over = Literal["beyond", "trained"] | tuple[int, ...]
Relation = Literal["is", "at least", "at most"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)
About = Literal["score", "rate", "steps"]
Statistic = Literal["median", "mean", "best"]
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
MEASURED = ("token", "accuracy", "error", "exact", "last", "beyond", GAIN)
"""Metrics that a claim can be about."""
EPSILON = 1e-9
"""0.52 - 0.5 is more than 0.02 in floating point."""
FACTOR = 2.0
"""The largest ratio of two error rates that agree."""


class Measure(NamedTuple):
    """Measure of a run: its task, its metric, and its sizes."""

    task: str
    metric: str | None
    over: Over
    weights: Rule


@dataclass(frozen=True)
class Published:
    """A number that was reported: a share right from 0 to 1, or with `scale="log"` an error rate."""

    task: str
    """As results label it."""
    scheme: str
    """As results label it, with the settings that vary: "nope (norm=post)"."""
    value: float
    source: str
    """The publication, and where in it; or the reason of a prediction of ours."""
    metric: str | None = None
    """"token", "exact", "last", "beyond" or "gain"; the task's own unless given."""
    tolerance: float = 0.02
    of: Statistic = "median"
    """Statistic of the published runs that the value is."""
    runs: int | None = None
    """How many runs theirs rests on, where that is known."""
    over: Over = "beyond"
    """Averaged over the sizes longer than any trained on, over those within the range, or over these."""
    weights: Rule = "equal"
    """Weights of the sizes in the average, of ours and of floors. "trapezoid" is for a published mean over every size
    of a range, of which ours evaluates a few."""
    relation: Relation = "is"
    floor: float | None = None
    """Share that the best guess gets right at the published sizes; that at ours unless given."""
    learned: bool = True
    """True if the models of the publication had learned their trained sizes, or if a prediction of ours is about models
    that have. A value below 0.9 at those sizes implies that they had not."""
    fact: str = ""
    """Claims of one fact are counted once: they say the same of the same runs of ours, or repeat one number. Without
    words a claim is a fact of its own."""
    origin: Origin = "published"
    scale: Literal["share", "log"] = "share"
    """"log": the value is an error rate, compared within a factor, since accuracies near 1 hide its size."""
    seen: Seen | None = None
    """Source that was read: "paper" is the publication itself or the runs that its authors released. "copy" is a
    quotation, a derivation, a summary or the README of its repository. "memory" is none of these. A published claim
    needs it; ours has none."""

    def __post_init__(self):
        check_measure(self.metric, self.over, self.weights)
        claim = f"{self.value} for {self.scheme!r} on {self.task!r}"
        check_origin(self.origin, self.source, claim)
        check_seen(self.seen, self.origin, claim)
        for name, choice, allowed in (("relation", self.relation, RELATIONS), ("statistic", self.of, STATISTICS)):
            if choice not in allowed:
                raise ValueError(f"{echoed(choice)} is not a {name} of claims; give {' or '.join(map(repr, allowed))}.")
        if not (0 <= self.value <= 1 and 0 <= self.tolerance <= 1):
            raise ValueError(f"{self.value} with a tolerance of {self.tolerance} was given; shares are from 0 to 1.")
        if self.relation != "is" and self.of == "best":
            raise ValueError(f"{self.relation} {self.value} is a bound, and the best of runs is a number; leave one.")
        if self.scale not in ("share", "log"):
            raise ValueError(f"{echoed(self.scale)} is not a scale of claims; give 'share' or 'log'.")
        if self.scale == "log" and (self.of == "best" or self.relation != "is" or self.task == ALL):
            raise ValueError(
                "A claim with scale='log' is a number of one task; leave its bound, its best or its scale."
            )

    @property
    def measure(self) -> Measure:
        """The measure of a run that the claim is about."""
        return Measure(self.task, self.metric, self.over, self.weights)

    @property
    def share(self) -> float:
        """The published value as a share right."""
        return 1 - self.value if self.scale == "log" else self.value

    def reached_by(self, floor: float) -> bool:
        """Tell whether a guess that gets this share right, or less, meets the published value by the claim's own
        tolerance.

        A model that learns nothing meets an upper bound, from below the floor or from above it.
        """
        if self.scale == "log":
            return 1 - floor <= self.value * FACTOR + EPSILON
        if self.relation == "at most":
            return True
        return self.value <= floor + self.tolerance + EPSILON


@dataclass(frozen=True)
class Order:
    """A report that one scheme does better than another on a task, or trains at a larger learning rate.

    An order of budgets is one of schemes whose labels name their steps: "rope (steps=400)" over "alibi (steps=800)".
    """

    task: str
    first: str
    second: str
    source: str
    """The publication, and where in it; or the reason of a prediction of ours."""
    metric: str | None = None
    tolerance: float = 0.01
    over: Over = "beyond"
    weights: Rule = "equal"
    learned: bool = True
    """As for `Published`; an order at the trained sizes implies that the second had not learned them."""
    fact: str = ""
    """As for `Published`."""
    origin: Origin = "published"
    about: About = "score"
    """Quantity that is ordered. "rate" is the largest learning rate at which a run neither diverged nor stayed at the
    floor; choosing the best rate of each scheme would delete such a claim. "steps" is the number of steps until the
    task is solved, in a run with `then` those of the further training. Both schemes must solve it in the end."""
    seen: Seen | None = None
    """Source of the order that was read, as for `Published`."""

    def __post_init__(self):
        check_measure(self.metric, self.over, self.weights)
        if not 0 <= self.tolerance <= 1:
            raise ValueError(f"The tolerance of an order is {self.tolerance}; it is a share from 0 to 1.")
        claim = f"{self.first!r} above {self.second!r} on {self.task!r}"
        check_origin(self.origin, self.source, claim)
        check_seen(self.seen, self.origin, claim)
        if self.first == self.second:
            raise ValueError(f"{self.first!r} is said to be above itself; give two schemes.")
        if self.about not in get_args(About):
            raise ValueError(f"{echoed(self.about)} cannot be ordered; give 'score', 'rate' or 'steps'.")

    @property
    def measure(self) -> Measure:
        """The measure of a run that the claim is about."""
        return Measure(self.task, self.metric, self.over, self.weights)


def check_measure(metric: str | None, over: Over, weights: Rule) -> None:
    """Raise `ValueError` for a metric, sizes or weights that no claim can have."""
    check_rule(weights)
    if metric is not None and metric not in MEASURED:
        raise ValueError(f"{echoed(metric)} is not a metric of claims; give {', '.join(map(repr, MEASURED))}.")
    sizes = isinstance(over, tuple) and over and all(type(n) is int and n >= 0 for n in over)
    if not sizes and over not in ("beyond", "trained"):
        raise ValueError(f"A claim is over {over!r}; give 'beyond', 'trained' or a tuple of sizes.")


def check_origin(origin: str, source: str, claim: str) -> None:
    """Raise `ValueError` for a claim that does not say where it comes from, or that takes ours for published."""
    if origin not in ORIGINS:
        raise ValueError(f"{echoed(origin)} is not an origin of claims; give {' or '.join(map(repr, ORIGINS))}.")
    if not source.strip():
        needed = "the publication" if origin == "published" else "the reason of the prediction"
        raise ValueError(f"The claim of {claim} has no source; give {needed} as source.")
    if origin == "published" and re.match(r"(ours|our own|arithmetic|prediction)\b", source.strip(), re.IGNORECASE):
        raise ValueError(f"The source of {claim} is {echoed(source)}, which is not a publication; give origin='ours'.")


def check_seen(seen: str | None, origin: str, claim: str) -> None:
    """Raise `ValueError` for a published claim that does not say where it was seen, or one of ours that does."""
    if origin == "ours":
        if seen is not None:
            raise ValueError(f"The claim of {claim} is ours and was seen nowhere; leave seen={seen!r}.")
        return
    if seen not in SEEN:
        where = "does not say where it was seen" if seen is None else f"was seen in {echoed(seen)}"
        raise ValueError(f"The claim of {claim} {where}; give seen={' or '.join(map(repr, SEEN))}.")


def count_seen(claims: Iterable[Published | Order]) -> dict[Seen, int]:
    """How many of the published claims were seen where."""
    places = [claim.seen for claim in claims if claim.origin == "published"]
    return {place: places.count(place) for place in SEEN}
