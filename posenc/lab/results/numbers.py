"""Published numbers compared with our runs: by the band of the median, by the best run, or by the logarithm of an error
rate.

Both sides are compared by the share of what their highest floor leaves, since a guess gets the floor of its own sizes.
A published share is carried over to our floor, where 1 stays 1. A run below a floor counts as at it. No jax.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from posenc.lab.results.evidence import REPEATS, Evidence
from posenc.lab.results.published import EPSILON, FACTOR, Published
from posenc.lab.results.reproduction import AGREES, BOTH, DIFFERS, NOT_RUN, OPEN, UNINFORMATIVE, Reproduction
from posenc.lab.results.statistics import LEAST, LEVEL, Summary, summary

WIDE = 0.05
"""A band may be twice the tolerance wide and this much more."""
NARROWING = 9
"""The number of runs from which the exact interval of the median leaves the extreme ones out."""


@dataclass(frozen=True)
class _Compared:
    """A claim and our runs on one scale."""

    value: float
    """The published value, carried over to our floor."""
    band: Summary
    """Band of our runs; a run below the floor counts as at the floor."""
    best: float
    """Best of all our runs, at every rate."""


def number(claim: Published, evidence: Evidence) -> Reproduction:
    """The verdict on a number of one task over given sizes, if it can be told from a guess."""
    runs = evidence.values_at_chosen_rate(claim.measure, claim.scheme)
    all_runs = evidence.runs(claim.measure, claim.scheme)
    ours = evidence.highest(claim.measure, claim.scheme)
    floor = ours if claim.floor is None else claim.floor
    if claim.scale == "log":
        bound = unseen(evidence.examples(claim.measure, claim.scheme))
        finding = _error_rate(claim, summary(1 - share for share in runs.values()), floor, bound)
    else:
        finding = _share(claim, summary(runs.values()), floor, _compared(claim, runs.values(), all_runs.values(), ours))
        if claim.of == "best" and runs:
            finding = replace(finding, best=float(max(all_runs.values())), best_of=len(all_runs))
    return _beside_a_guess(finding, summary(runs.values()).median, evidence) if runs else finding


def rank(claim: Published, ours: Summary) -> Reproduction:
    """The verdict on a mean reciprocal rank, which has no floor."""
    return _share(claim, ours, None, _Compared(claim.value, ours, ours.high))


def unseen(examples: int) -> float:
    """Return the largest error rate at which `examples` examples show no error in one of twenty cases."""
    return 1 - (1 - LEVEL) ** (1 / examples) if examples else 1.0


def _beside_a_guess(finding: Reproduction, median: float, evidence: Evidence) -> Reproduction:
    """The finding, if a guess would not have given it as well."""
    claim, floor = finding.published, finding.floor
    guess = "a share of zero" if floor is None else f"a guess (baseline {floor:.2f})"
    if claim.reached_by(floor or 0.0) and not evidence.clear(claim.measure):
        if lucky := evidence.clear(claim.measure, repeats=1):
            reason = f"{guess} meets the claim, and {lucky[0]}, which is clear of it, has fewer than {REPEATS} runs"
            return finding.because(OPEN, "control", reason)
        reason = f"{guess} meets the claim, and none of our schemes is clear of it"
        return finding.because(UNINFORMATIVE, "floor", reason)
    if evidence.above(claim.measure, claim.scheme, median):
        return finding
    at = evidence.highest(claim.measure, claim.scheme) or 0.0
    if claim.origin == "published" and replace(claim, relation="is").reached_by(floor or 0.0):
        reason = f"{guess} meets the claim, and our runs are at the baseline, {at:.2f}, too"
        return finding.because(BOTH, "floor", reason)
    if finding.verdict == AGREES and not claim.reached_by(floor or 0.0):
        reason = f"our runs are at the baseline, {at:.2f}, and what is claimed is not"
        return finding.because(OPEN, "unlearned", reason)
    return finding


def _compared(claim: Published, runs: Collection[float], all_runs: Collection[float], floor: float | None) -> _Compared:
    """The claim and our runs above our floor."""
    ours, theirs = floor or 0.0, (floor if claim.floor is None else claim.floor) or 0.0
    share = max(claim.value - theirs, 0.0) / (1 - theirs) if theirs < 1 else 0.0
    band = summary(max(value, ours) for value in runs)
    return _Compared(ours + share * (1 - ours), band, float(max((ours, *all_runs))))


def _share(claim: Published, ours: Summary, floor: float | None, on: _Compared) -> Reproduction:
    """By the band: whether it meets the claim, and whether so wide a band would meet nearly anything. A published best
    is held against the best of our runs, which has no band."""
    finding = Reproduction(claim, ours, floor, AGREES if ours.n else NOT_RUN)
    if not ours.n:
        return finding
    best = claim.of == "best"
    low, high = (on.best, on.best) if best else (on.band.low, on.band.high)
    least = 0.0 if claim.relation == "at most" else on.value
    most = 1.0 if claim.relation == "at least" else on.value
    if max(low - most, least - high) > claim.tolerance + EPSILON:
        better = (on.best if best else on.band.median) > on.value
        return _few(replace(finding.because(DIFFERS, "apart", _apart(claim, ours, on)), better=better))
    within = least <= low and high <= most  # only a bound can hold a band
    allowed = 2 * claim.tolerance + WIDE
    if high - low > allowed + EPSILON and not within:
        reason = f"our band is {high - low:.2f} wide, and {allowed:.2f} is allowed"
        return finding.because(OPEN, "wide", reason, _narrowing(ours.n))
    return _few(finding)


def _error_rate(claim: Published, ours: Summary, floor: float | None, bound: float) -> Reproduction:
    """By logarithm, within a factor. A run without an error shows only that its rate is below a bound."""
    finding = Reproduction(claim, ours, floor, AGREES if ours.n else NOT_RUN, unseen=bound)
    if not ours.n or (claim.value == 0 and ours.high == 0):
        return _few(finding)
    if claim.value == 0:
        reason = f"our runs have error rates of up to {ours.high:.2g}, where no error was reported"
        if ours.low > 0:
            return _few(replace(finding.because(DIFFERS, "apart", reason), better=False))
        return finding.because(OPEN, "wide", reason)
    most = ours.high or bound
    least = ours.low or min(bound, most)
    if ours.low > claim.value * FACTOR + EPSILON or most < claim.value / FACTOR - EPSILON:
        rate = f"of {ours.median:.2g}" if ours.median else f"below {bound:.2g}"
        better = ours.median < claim.value
        side = "better" if better else "worse"
        reason = f"our error rate {rate} is {side} than {claim.value:.2g} by more than a factor of {FACTOR:g}"
        return _few(replace(finding.because(DIFFERS, "apart", reason), better=better))
    measured = claim.value / FACTOR - EPSILON <= ours.median <= claim.value * FACTOR + EPSILON
    if ours.high == 0 or (ours.low == 0 and not measured):  # a run without an error is below any rate
        reason = f"no error among our test examples leaves up to {bound:.2g}, too coarse for {claim.value:.2g}"
        return finding.because(OPEN, "unresolved", reason)
    if most > least * FACTOR**2 + EPSILON:
        reason = f"our error rates span a factor of {most / least:.0f}, and {FACTOR**2:g} is allowed"
        return finding.because(OPEN, "wide", reason, _narrowing(ours.n))
    return _few(finding)


def _few(finding: Reproduction) -> Reproduction:
    """Return the finding, left open by too few runs. Three runs on one side of a number are as likely by chance as
    three pairs of one sign. So a number is rejected by as many as an order, and met by fewer."""
    n = finding.ours.n
    needs, does = (LEAST, "is rejected by") if finding.verdict == DIFFERS else (REPEATS, "needs")
    if n >= needs or finding.verdict == NOT_RUN:
        return finding
    lie = f"; {finding.reason}" if finding.verdict == DIFFERS else ""
    reason = f"n too small: {n} run{'s' * (n > 1)}, and a number {does} {needs}{lie}"
    return finding.because(OPEN, "few", reason, needs)


def _apart(claim: Published, ours: Summary, on: _Compared) -> str:
    """How far our runs are from what was claimed, on the scale on which they are compared."""
    value = on.best if claim.of == "best" else on.band.median
    side, kind = "below" if value < on.value else "above", "" if claim.relation == "is" else "the bound of "
    plain = max(abs(on.value - claim.value), on.band.median - ours.median) <= EPSILON
    counting = "" if plain else " above the baseline"
    return f"our runs are {abs(value - on.value):.2f} {side} {kind}{claim.value:.2f}{counting}"


def _narrowing(n: int) -> int | None:
    return NARROWING if n < NARROWING else None
