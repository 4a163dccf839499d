"""Orders compared with our runs: differences of pairs of one seed in scores, largest rates, or steps to learn.

Two scores are compared by what each has above its own highest floor. So one below its floor is not worse than one at
it. No jax.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from posenc.lab.results.evidence import SURE, Evidence
from posenc.lab.results.published import EPSILON, Order
from posenc.lab.results.reproduction import AGREES, DIFFERS, NOT_RUN, OPEN, UNINFORMATIVE, Reproduction
from posenc.lab.results.statistics import LEAST, Summary, interval_rank, summary
from posenc.lab.results.ties import difference

TEST = "sign test, two-sided, exact, uncorrected"
"""The test behind p of an order; pairs without a difference are left out."""


def order(claim: Order, evidence: Evidence) -> Reproduction:
    """The verdict on an order over given sizes."""
    return {"score": _scores, "rate": _rates, "steps": _steps}[claim.about](claim, evidence)


def sign_test(differences: Iterable[float]) -> float:
    """The two-sided p of the exact sign test that differences are as often above 0 as below; zeros are left out."""
    signs = [gap > 0 for gap in differences if gap]
    tail = sum(math.comb(len(signs), k) for k in range(min(sum(signs), len(signs) - sum(signs)) + 1))
    return min(1.0, 2 * tail / 2 ** len(signs))


def by_chance(pairs: int) -> float:
    """Return the probability that `pairs` pairs of two equal schemes decide an order. The exact interval of their
    median, which leaves out equally many at both ends, then lies on one side of 0. Below six pairs no interval does."""
    rank = interval_rank(pairs)
    return 0.0 if rank is None else 2 * sum(math.comb(pairs, k) for k in range(rank + 1)) / 2**pairs


def _scores(claim: Order, evidence: Evidence) -> Reproduction:
    """First less second, paired by seed, since runs of one seed share their data."""
    schemes = claim.first, claim.second
    by_scheme = {scheme: evidence.values_at_chosen_rate(claim.measure, scheme) for scheme in schemes}
    floors = {scheme: evidence.highest(claim.measure, scheme) or 0.0 for scheme in schemes}
    first, second = ({seed: max(v - floors[s], 0.0) for seed, v in by_scheme[s].items()} for s in schemes)
    gaps = [difference(first[seed], second[seed]) for seed in sorted(first.keys() & second.keys())]
    medians = {scheme: summary(of.values()).median for scheme, of in by_scheme.items() if of}
    learned = any(evidence.above(claim.measure, scheme, value) for scheme, value in medians.items())
    finding = _decided(claim, gaps, claim.tolerance, learned, evidence)
    if finding.cause == "equal" and min(medians.values()) >= 1 - claim.tolerance - EPSILON:
        return finding.because(OPEN, "ceiling", f"both are at the ceiling, {_duration(claim, evidence)}")
    return finding


def _duration(claim: Order, evidence: Evidence) -> str:
    """How long two schemes took that both solve a task."""
    steps = [evidence.sure(claim.task, scheme) for scheme in (claim.first, claim.second)]
    if not all(steps):
        return "and the record has no curves, so that harder or longer examples would decide it"
    took = " and ".join(_number(median(of.values())) for of in steps)
    return f"in the median after {took} steps, counted until the loss is that of {SURE:g} for each right token"


def _number(steps: float) -> str:
    return "more than were trained" if math.isinf(steps) else f"{steps:,.0f}"


def _steps(claim: Order, evidence: Evidence) -> Reproduction:
    """Steps until the second has solved the task less those of the first, paired by seed."""
    first, second = (evidence.sure(claim.task, scheme) for scheme in (claim.first, claim.second))
    pairs = [(first[seed], second[seed]) for seed in sorted(first.keys() & second.keys())]
    solved = [pair for pair in pairs if max(pair) < math.inf]
    finding = _decided(claim, [late - early for early, late in solved], 0.0, bool(solved), evidence)
    if len(solved) < len(pairs):
        reason = f"in {len(pairs) - len(solved)} of {len(pairs)} pairs a run has not solved the task"
        return finding.because(OPEN, "few", reason)
    return replace(finding, steps=tuple(median(of) for of in zip(*pairs, strict=True))) if pairs else finding


def _rates(claim: Order, evidence: Evidence) -> Reproduction:
    """Largest stable rate of the first against that of the second, paired by seed, in steps between the rates tried."""
    schemes = claim.first, claim.second
    first, second = (evidence.stable(claim.measure, scheme) for scheme in schemes)
    tried, others = (evidence.tried(claim.measure, scheme) for scheme in schemes)
    steps = sorted({0.0, *tried, *others})
    gaps = [steps.index(first[seed]) - steps.index(second[seed]) for seed in sorted(first.keys() & second.keys())]
    finding = _decided(claim, gaps, 0.0, any((*first.values(), *second.values())), evidence)
    if not gaps:
        return finding
    if len(tried) < 2 or tried != others:
        return finding.because(OPEN, "few", "both must be trained at the same learning rates, two or more")
    finding = replace(finding, rates=(min(first.values()), min(second.values())))
    if finding.cause == "equal" and finding.rates == (tried[-1], tried[-1]):
        return finding.because(OPEN, "few", "all runs of both learn at the largest rate tried")
    return finding


def _decided(claim: Order, gaps: Sequence[float], tolerance: float, learned: bool, evidence: Evidence) -> Reproduction:
    """By the interval of paired differences, if there are enough of them and one of the two learned something."""
    ours, floor = summary(gaps), evidence.highest(claim.measure, claim.first)
    finding = Reproduction(claim, ours, floor, AGREES if ours.n else NOT_RUN)
    if not ours.n:
        return finding
    if not learned:
        guess = "zero" if floor is None else f"the baseline, {floor:.2f}"
        return finding.because(UNINFORMATIVE, "floor", f"neither scheme is clear of {guess}")
    if ours.n < LEAST:
        reason = f"n too small: {ours.n} pair{'s' * (ours.n > 1)} of runs, and an order needs {LEAST}"
        return finding.because(OPEN, "few", reason, LEAST)
    finding = replace(finding, p=sign_test(gaps))
    if ours.low > tolerance + EPSILON:
        return finding
    if ours.high < -tolerance - EPSILON:
        return finding.because(DIFFERS, "apart", "the order is the other way round")
    if max(abs(ours.low), abs(ours.high)) <= tolerance + EPSILON:
        return finding.because(OPEN, "equal", f"they are equal within {tolerance:g}")
    return finding.because(OPEN, "undecided", _undecided(gaps, ours, tolerance))


def _undecided(gaps: Sequence[float], ours: Summary, tolerance: float) -> str:
    """Why an interval decides no order: it holds both, or ends within the tolerance, though all pairs may agree."""
    if ours.low < -tolerance - EPSILON and ours.high > tolerance + EPSILON:
        return "the interval of differences reaches from one order to the other"
    first = ours.high > tolerance + EPSILON
    edge = f"the interval of differences {'begins' if first else 'ends'} within the tolerance of {tolerance:g}"
    if all(gap > 0 for gap in gaps) or all(gap < 0 for gap in gaps):
        return f"the {'first' if first else 'second'} is ahead in all {len(gaps)} pairs, but {edge}"
    return edge
