"""Verdicts: a claim held against our runs, by rules under which an agreement can fail. No jax.

    agrees         a number: our band, widened by the tolerance on both sides, meets the claim;
                   an order: the whole interval of paired differences lies above the tolerance
    differs        a number: it does not; an order: the whole interval lies below minus the tolerance
    open           our runs do not decide it: an order of fewer than six pairs, or whose interval holds neither; a
                   number that our band meets only because it is wide; a number of fewer than three runs, unless they
                   are so far from it that the widest band allowed, beginning there, would not meet it
    uninformative  a claim that a guess meets, as it meets any upper bound, where none of our schemes is clear of that
                   guess; an order of two schemes whose medians are both at a guess
    not run        no committed record holds it, or its runs share no size at which they can be compared

What is compared is compared on one set of sizes (`evidence`). A positive control, a scheme that is clear of a guess,
has three runs at least.
A band is that of `statistics.summary`: the range below six runs, the exact 95 % interval of the median from six on, at
the learning rate chosen on validation examples. A published best of several runs, which no band bounds, is held against
the best of all our runs at all rates. A verdict is on our setting: where that is smaller than the published one,
"differs" says that the number does not carry over, and not that it was wrong. Every verdict but "agrees" has a reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from posenc.lab.results.evidence import REPEATS, Evidence
from posenc.lab.results.published import ALL, EPSILON, ORIGINS, Order, Published
from posenc.lab.results.rank_agreement import live, reciprocal_ranks
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import LEAST, LEVEL, Summary, summary

AGREES, DIFFERS, OPEN, UNINFORMATIVE, NOT_RUN = "agrees", "differs", "open", "uninformative", "not run"
VERDICTS = (AGREES, DIFFERS, OPEN, UNINFORMATIVE, NOT_RUN)
LACKING = "the record holds no such run"
WIDE = 0.05
"""A band may be twice the tolerance wide and this much more."""
NARROWING = 9
"""Runs from which on the exact interval of the median leaves the extreme ones out."""
TEST = "sign test, two-sided, exact, uncorrected"
"""What p of an order is from; pairs without a difference are left out."""
Cause = Literal[
    "",
    "few",
    "undecided",
    "equal",
    "wide",
    "unresolved",
    "floor",
    "uncounted",
    "missing",
    "unshared",
    "control",
    "apart",
]
"""The kind of a reason."""


@dataclass(frozen=True)
class Reproduction:
    """A claim, what we found, and whether they agree."""

    published: Published | Order
    ours: Summary
    """Of our runs at the chosen rate, or of their paired differences; n is 0 where nothing was run. Of a claim with
    `scale="log"` it is of error rates, and of an order of rates it is of steps between the rates tried."""
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
    """Of an order from six pairs on, by `TEST`."""
    rates: tuple[float, float] | None = None
    """Of an order of rates: the largest stable rate of the first and of the second, each the least over seeds."""
    unseen: float | None = None
    """Of error rates: what no error among so many test examples leaves possible, with 95 %."""

    @property
    def explained(self) -> bool:
        """Whether a guess meets what was published."""
        claim = self.published
        if not isinstance(claim, Published) or claim.relation != "is" or self.floor is None:
            return False
        return claim.reached_by(self.floor)


def findings(published: Sequence[Published | Order], results: Results | Evidence | None) -> tuple[Reproduction, ...]:
    """A verdict on each claim, from results, or from none."""
    evidence = Evidence(results) if isinstance(results, Results) else results
    return tuple(_finding(claim, evidence) for claim in published)


def counted(found: Iterable[Reproduction]) -> dict[str, dict[str, int]]:
    """How often each verdict was given, for published claims and for our own apart."""
    found = tuple(found)
    given = {origin: [one.verdict for one in found if one.published.origin == origin] for origin in ORIGINS}
    return {origin: {verdict: one.count(verdict) for verdict in VERDICTS} for origin, one in given.items()}


def sign_test(differences: Iterable[float]) -> float:
    """The two-sided p of the exact sign test that differences are as often above 0 as below; zeros are left out."""
    signs = [gap > 0 for gap in differences if gap]
    tail = sum(math.comb(len(signs), k) for k in range(min(sum(signs), len(signs) - sum(signs)) + 1))
    return min(1.0, 2 * tail / 2 ** len(signs))


def unseen(examples: int) -> float:
    """The largest error rate under which so many examples show no error in one of twenty cases."""
    return 1 - (1 - LEVEL) ** (1 / examples) if examples else 1.0


def _finding(claim: Published | Order, evidence: Evidence | None) -> Reproduction:
    start = Reproduction(claim, summary(()), getattr(claim, "floor", None), NOT_RUN)
    if evidence is None:
        return _because(start, NOT_RUN, "missing", "there is no record")
    if claim.task != ALL and evidence.uncounted(claim.measure):
        reason = f"the record did not count {claim.measure.metric!r}; train again under a new --name"
        return _because(start, NOT_RUN, "uncounted", reason)
    if claim.task == ALL and isinstance(claim, Published):
        return _of_all_tasks(claim, evidence)
    schemes = (claim.first, claim.second) if isinstance(claim, Order) else (claim.scheme,)
    if reason := evidence.unshared(claim.measure, schemes):
        return _because(start, NOT_RUN, "unshared", reason)
    over = evidence.sizes(claim.measure, schemes)
    if not over:
        return _because(start, NOT_RUN, "missing", LACKING)
    return replace(_compared(replace(claim, over=over), evidence), published=claim)


def _compared(claim: Published | Order, evidence: Evidence) -> Reproduction:
    """The verdict on a claim about one task over given sizes."""
    if isinstance(claim, Order):
        found = _rates(claim, evidence) if claim.about == "rate" else _order(claim, evidence)
    else:
        found = _of_task(claim, evidence)
    return _because(found, NOT_RUN, "missing", LACKING) if found.verdict == NOT_RUN else found


def _of_all_tasks(claim: Published, evidence: Evidence) -> Reproduction:
    """The verdict on a mean reciprocal rank."""
    found = _number(claim, summary(reciprocal_ranks(claim, evidence).values()), None)
    if evidence.tasks and not live(claim, evidence):
        return _because(found, UNINFORMATIVE, "floor", "no task has a scheme clear of its floor")
    return _because(found, NOT_RUN, "missing", LACKING) if found.verdict == NOT_RUN else found


def _of_task(claim: Published, evidence: Evidence) -> Reproduction:
    """The verdict on a number of one task, if it can be told from a guess."""
    runs, every = evidence.chosen(claim.measure, claim.scheme), evidence.runs(claim.measure, claim.scheme)
    ours = _floor(evidence, claim)
    floor = ours if claim.floor is None else claim.floor
    if claim.scale == "log":
        bound = unseen(evidence.examples(claim.measure, claim.scheme))
        found = _error_rate(claim, summary(1 - share for share in runs.values()), floor, bound)
    elif claim.of == "best" and runs:
        found = _best(claim, summary(runs.values()), floor, max(every.values()), len(every))
    else:
        found = _number(claim, summary(runs.values()), floor)
    if not runs or not claim.reached_by(floor or 0.0) or evidence.clear(claim.measure, claim.tolerance):
        return found
    guess = "a share of zero" if floor is None else f"a guess (floor {floor:.2f})"
    if lucky := evidence.clear(claim.measure, claim.tolerance, repeats=1):
        reason = f"{guess} meets the claim, and {lucky[0]}, which is clear of it, has fewer than {REPEATS} runs"
        return _because(found, OPEN, "control", reason)
    return _because(found, UNINFORMATIVE, "floor", f"{guess} meets the claim, and none of our schemes is clear of it")


def _number(claim: Published, ours: Summary, floor: float | None) -> Reproduction:
    """By the band: whether it meets the claim, and whether so wide a band would meet nearly anything."""
    low = 0.0 if claim.relation == "at most" else claim.value
    high = 1.0 if claim.relation == "at least" else claim.value
    made, slack = Reproduction(claim, ours, floor, AGREES if ours.n else NOT_RUN), claim.tolerance + EPSILON
    allowed = _allowed(claim)
    gap = max(ours.low - high, low - ours.high) if ours.n else 0.0
    if gap > slack:
        return _few(_because(made, DIFFERS, "apart", _apart(claim, ours.median)), gap > slack + allowed)
    within = low <= ours.low and ours.high <= high  # only a bound can hold a band
    if ours.high - ours.low > allowed + EPSILON and not within:
        reason = f"our band is {ours.high - ours.low:.2f} wide, and {allowed:.2f} is allowed"
        return _because(made, OPEN, "wide", reason, _narrowing(ours.n))
    return _few(made)


def _allowed(claim: Published) -> float:
    """How wide a band may be that meets a number."""
    return 2 * claim.tolerance + WIDE


def _best(claim: Published, ours: Summary, floor: float | None, best: float, many: int) -> Reproduction:
    """Against a published best: the best of our runs, which has no band."""
    made = Reproduction(claim, ours, floor, AGREES, best=best, best_of=many)
    gap, slack = abs(best - claim.value), claim.tolerance + EPSILON
    if gap <= slack:
        return _few(made)
    return _few(_because(made, DIFFERS, "apart", _apart(claim, best)), gap > slack + _allowed(claim))


def _error_rate(claim: Published, ours: Summary, floor: float | None, bound: float) -> Reproduction:
    """By logarithm, within a factor. A run without an error shows only that its rate is below a bound."""
    made = Reproduction(claim, ours, floor, AGREES if ours.n else NOT_RUN, unseen=bound)
    if not ours.n or (claim.value == 0 and ours.high == 0):
        return _few(made)
    if claim.value == 0:
        reason = f"our runs have error rates of up to {ours.high:.2g}, where no error was reported"
        return _few(_because(made, DIFFERS, "apart", reason)) if ours.low > 0 else _because(made, OPEN, "wide", reason)
    most = ours.high or bound
    least = ours.low or min(bound, most)
    if _outside(claim, ours.low, most, claim.factor):
        rate = f"of {ours.median:.2g}" if ours.median else f"below {bound:.2g}"
        reason = f"our error rate {rate} is not within a factor of {claim.factor:g} of {claim.value:.2g}"
        return _few(_because(made, DIFFERS, "apart", reason), _outside(claim, ours.low, most, claim.factor**3))
    measured = claim.value / claim.factor - EPSILON <= ours.median <= claim.value * claim.factor + EPSILON
    if ours.high == 0 or (ours.low == 0 and not measured):  # a run without an error is below any rate
        reason = f"no error among our test examples leaves up to {bound:.2g}, too coarse for {claim.value:.2g}"
        return _because(made, OPEN, "unresolved", reason)
    if most > least * claim.factor**2 + EPSILON:
        reason = f"our error rates span a factor of {most / least:.0f}, and {claim.factor**2:g} is allowed"
        return _because(made, OPEN, "wide", reason, _narrowing(ours.n))
    return _few(made)


def _outside(claim: Published, low: float, high: float, factor: float) -> bool:
    """Whether all error rates from one to another are further than a factor from that of the claim."""
    return low > claim.value * factor + EPSILON or high < claim.value / factor - EPSILON


def _few(found: Reproduction, clearly: bool = False) -> Reproduction:
    """The finding on a number, which fewer than three runs leave open unless they clearly differ from it."""
    n = found.ours.n
    if clearly or n >= REPEATS or found.verdict == NOT_RUN:
        return found
    reason = f"n too small: {n} run{'s' * (n > 1)}, and a number needs {REPEATS}"
    return _because(found, OPEN, "few", reason, REPEATS)


def _order(claim: Order, evidence: Evidence) -> Reproduction:
    """First less second, paired by seed, since runs of one seed share their data."""
    first, second = (evidence.chosen(claim.measure, scheme) for scheme in (claim.first, claim.second))
    gaps = [first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())]
    medians = {s: summary(of.values()).median for s, of in ((claim.first, first), (claim.second, second)) if of}
    learned = any(evidence.above(claim.measure, scheme, value, claim.tolerance) for scheme, value in medians.items())
    return _decided(claim, gaps, claim.tolerance, learned, _floor(evidence, claim))


def _rates(claim: Order, evidence: Evidence) -> Reproduction:
    """Largest stable rate of the first against that of the second, paired by seed, in steps between the rates tried."""
    schemes = claim.first, claim.second
    first, second = (evidence.stable(claim.measure, scheme) for scheme in schemes)
    tried, others = (evidence.tried(claim.measure, scheme) for scheme in schemes)
    steps = sorted({0.0, *tried, *others})
    gaps = [steps.index(first[seed]) - steps.index(second[seed]) for seed in sorted(first.keys() & second.keys())]
    found = _decided(claim, gaps, 0.0, any((*first.values(), *second.values())), _floor(evidence, claim))
    if not gaps:
        return found
    if len(tried) < 2 or tried != others:
        return _because(found, OPEN, "few", "both must be trained at the same learning rates, two or more")
    found = replace(found, rates=(min(first.values()), min(second.values())))
    if found.cause == "equal" and found.rates == (tried[-1], tried[-1]):
        return _because(found, OPEN, "few", "all runs of both learn at the largest rate tried")
    return found


def _decided(claim: Order, gaps: Sequence[float], tolerance: float, learned: bool, floor: float | None) -> Reproduction:
    """By the interval of paired differences, if there are enough of them and one of the two learned something."""
    ours = summary(gaps)
    made = Reproduction(claim, ours, floor, AGREES if ours.n else NOT_RUN)
    if not ours.n:
        return made
    if not learned:
        guess = "zero" if floor is None else f"the floor, {floor:.2f}"
        return _because(made, UNINFORMATIVE, "floor", f"neither scheme is above {guess}")
    if ours.n < LEAST:
        reason = f"n too small: {ours.n} pair{'s' * (ours.n > 1)} of runs, and an order needs {LEAST}"
        return _because(made, OPEN, "few", reason, LEAST)
    made = replace(made, p=sign_test(gaps))
    if ours.low > tolerance + EPSILON:
        return made
    if ours.high < -tolerance - EPSILON:
        return _because(made, DIFFERS, "apart", "the order is the other way round")
    if max(abs(ours.low), abs(ours.high)) <= tolerance + EPSILON:
        return _because(made, OPEN, "equal", f"they are equal within {tolerance:g}")
    return _because(made, OPEN, "undecided", "the interval of differences reaches from one order to the other")


def _because(found: Reproduction, verdict: str, cause: Cause, reason: str, needs: int | None = None) -> Reproduction:
    """The same finding with another verdict, for a reason."""
    return replace(found, verdict=verdict, cause=cause, reason=reason, needs=needs)


def _floor(evidence: Evidence, claim: Published | Order) -> float | None:
    """The highest floor at our sizes."""
    named = evidence.floor(claim.measure, claim.first if isinstance(claim, Order) else claim.scheme)
    return named[1] if named else None


def _apart(claim: Published, value: float) -> str:
    """How far a value is from what was claimed."""
    side, kind = "below" if value < claim.value else "above", "" if claim.relation == "is" else "the bound of "
    return f"our runs are {abs(value - claim.value):.2f} {side} {kind}{claim.value:.2f}"


def _narrowing(n: int) -> int | None:
    return NARROWING if n < NARROWING else None
