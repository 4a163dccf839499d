"""Verdicts: a claim compared with our runs, by rules under which an agreement can fail. No jax.

    agrees           a number: our band, widened by the tolerance on both sides, meets the claim;
                     an order: the whole interval of paired differences lies above the tolerance
    differs          a number: it does not; an order: the whole interval lies below minus the tolerance
    open             our runs do not decide it: what is behind has not learned the trained sizes;
                     a number that no guess meets, met by runs at a baseline; an order of fewer than six pairs, or
                     whose interval holds neither, or both of whose schemes are at the ceiling; a number that our band
                     meets only because it is wide; a number that fewer than three runs meet, or fewer than six reject
    both at a baseline
                     a guess meets the published number, and ours is at our baseline; another scheme is clear of it
    uninformative    a claim that a guess meets, as it meets any upper bound, where no scheme of ours is clear of that
                     guess; an order of two schemes whose medians are both at a guess; the rank of one that is at a
                     guess on every task
    not run          no committed record holds it, or its runs share no size at which they can be compared
    not attempted    the experiment says that it is too dear to be run here

Both sides are compared on one set of sizes, and above the highest baseline of each side (`evidence`, `numbers`,
`orders`). A share is clear of a baseline if it is above it by three standard errors of the test set. A positive control
is a scheme that is clear of a guess in three runs at least. A scheme has learned the trained sizes if its median is 0.9
or more at each of them. A scheme that has not learned decides no order. The worse scheme must have learned, unless the
claim says otherwise. This applies only if the models of the publication had learned (`Published.learned`). Our own
predictions follow the same rule; one that something is not learned says `learned=False`.

A band is that of `statistics.summary`: the range below six runs, the exact 95 % interval of the median from six on, at
the learning rate chosen on validation examples. A published best of several runs is compared with the best of all our
runs at all rates. A verdict is on our setting. If that is smaller than the published one, "differs" says that the
number does not carry over, and not that it was wrong. Every verdict but "agrees" has a reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from posenc.lab.results import numbers
from posenc.lab.results.evidence import Evidence
from posenc.lab.results.numbers import number
from posenc.lab.results.orders import by_chance, order
from posenc.lab.results.published import ALL, EPSILON, ORIGINS, Order, Published
from posenc.lab.results.reciprocal_ranks import live, reciprocal_ranks, unranked
from posenc.lab.results.reproduction import (
    AGREES,
    BOTH,
    DIFFERS,
    NOT_ATTEMPTED,
    NOT_RUN,
    OPEN,
    UNINFORMATIVE,
    VERDICTS,
    Reproduction,
)
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import HOLDS, summary
from posenc.lab.results.ties import TOLERANCE

LACKING = "the record holds no such run"


def findings(
    published: Sequence[Published | Order], results: Results | Evidence | None, attempted: bool = True
) -> tuple[Reproduction, ...]:
    """A verdict on each claim, from results, or from none: of an experiment that is not attempted here, or not yet."""
    evidence = Evidence(results) if isinstance(results, Results) else results
    return tuple(_finding(claim, evidence, attempted) for claim in published)


def _finding(claim: Published | Order, evidence: Evidence | None, attempted: bool) -> Reproduction:
    start = Reproduction(claim, summary(()), getattr(claim, "floor", None), NOT_RUN)
    if evidence is None and not attempted:
        return start.because(NOT_ATTEMPTED, "cost", "its cost")
    if evidence is None:
        return start.because(NOT_RUN, "missing", "there is no record")
    if claim.task != ALL and evidence.uncounted(claim.measure):
        reason = f"the record did not count {claim.measure.metric!r}; train again under a new --name"
        return start.because(NOT_RUN, "uncounted", reason)
    if claim.task == ALL and isinstance(claim, Published):
        return _of_all_tasks(claim, evidence)
    schemes = (claim.first, claim.second) if isinstance(claim, Order) else (claim.scheme,)
    if reason := evidence.unshared(claim.measure, schemes):
        return start.because(NOT_RUN, "unshared", reason)
    over = evidence.sizes(claim.measure, schemes)
    judge = order if isinstance(claim, Order) else number
    finding = judge(replace(claim, over=over), evidence) if over else start
    if finding.verdict == NOT_RUN:
        return start.because(NOT_RUN, "missing", LACKING)
    return _if_trained(replace(finding, published=claim), evidence)


def _of_all_tasks(claim: Published, evidence: Evidence) -> Reproduction:
    """The verdict on a mean reciprocal rank."""
    finding = numbers.rank(claim, summary(reciprocal_ranks(claim, evidence).values()))
    if evidence.tasks and not live(claim, evidence):
        return finding.because(UNINFORMATIVE, "floor", "no task has a scheme clear of its baseline")
    if claim.scheme in unranked(claim, evidence):
        reason = "it is at the baseline on every task that has a scheme clear of it, and ties have no rank"
        return finding.because(UNINFORMATIVE, "floor", reason)
    return finding.because(NOT_RUN, "missing", LACKING) if finding.verdict == NOT_RUN else finding


def _if_trained(finding: Reproduction, evidence: Evidence) -> Reproduction:
    """The finding, if what is behind has learned the sizes trained on, where the claim takes it that it had."""
    claim = finding.published
    if not claim.learned or finding.verdict == BOTH:
        return finding
    for scheme in _behind(finding):
        weakest = evidence.weakest(claim.measure, scheme)
        if weakest is not None and weakest[1] < (least := evidence.least(claim.measure)) - TOLERANCE:
            size, median = weakest
            reason = f"{scheme} has not learned the sizes trained on: {median:.2f} at {size}, below {least:g}"
            return finding.because(OPEN, "untrained", reason)
    return finding


def _behind(finding: Reproduction) -> list[str]:
    """Return the schemes that a verdict places, or may place, behind a claim about them or behind one another. Schemes
    that the claim itself places behind are left out."""
    claim, ours = finding.published, finding.ours
    if isinstance(claim, Order):
        level = finding.verdict == UNINFORMATIVE
        first, second = ours.low < -EPSILON or level, (ours.high > EPSILON or level) and claim.over != "trained"
        return [s for s, lags in ((claim.first, first), (claim.second, second)) if lags and claim.about == "score"]
    if finding.verdict == UNINFORMATIVE:
        return []
    taught = claim.share >= HOLDS and finding.verdict != AGREES
    return [claim.scheme] if not _ahead(finding) and (claim.over != "trained" or taught) else []


def _ahead(finding: Reproduction) -> bool:
    """Tell whether our runs are above a published number, by enough to differ or to meet a bound."""
    claim, ours = finding.published, finding.ours.median if finding.best is None else finding.best
    more = (1 - ours if claim.scale == "log" else ours) > claim.share
    return more and (finding.verdict != AGREES or claim.relation == "at least")


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
    for place, finding in enumerate(findings):
        claim = finding.published
        of.setdefault((claim.origin, claim.fact) if claim.fact else place, {}).setdefault(finding.verdict, finding)
    return tuple(finding for verdicts in of.values() for finding in _with_runs(verdicts))


def orders_by_chance(findings: Iterable[Reproduction]) -> tuple[int, int, float]:
    """Return how many orders have enough pairs to be tested, how many of them are decided, and how many chance would
    decide at most if no two of all these schemes differed."""
    tested = [finding for finding in findings if finding.p is not None]
    decided = sum(finding.verdict in (AGREES, DIFFERS) for finding in tested)
    return len(tested), decided, sum(by_chance(finding.ours.n) for finding in tested)


def _with_runs(verdicts: dict[str, Reproduction]) -> list[Reproduction]:
    """Return the verdicts that rest on runs; else one that was not run, or else not attempted."""
    findings = [finding for verdict, finding in verdicts.items() if verdict not in UNKNOWN]
    return findings or [next(verdicts[verdict] for verdict in UNKNOWN if verdict in verdicts)]
