"""Claims as the texts of a table, for `posenc reproduce`, reports and the pages in docs."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence

from posenc.lab.results.orders import by_chance
from posenc.lab.results.published import ALL, FACTOR, Order, Published, Seen
from posenc.lab.results.reproduction import DIFFERS, NOT_ATTEMPTED, OPEN, Reproduction
from posenc.lab.results.statistics import LEAST
from posenc.lab.results.verdicts import count_verdicts, distinct, orders_by_chance

WIDTH = 100
"""Columns of a block."""
COLUMNS = ("task", "scheme", "measure", "from", "checked against", "claim", "our runs", "n", "p", "baseline", "verdict")
CALLED = {"published": "Published claims", "ours": "Claims of our own (predictions and arithmetic)"}
BETWEEN = {"score": "above", "rate": "trains at a larger rate than", "steps": "takes fewer steps than"}
SHORT = {"untrained": "not learned in training", "unlearned": "not learned", "ceiling": "both at the ceiling"}
SHORT |= {"few": "too few runs", "undecided": "undecided", "equal": "equal", "wide": "too wide", "cost": "cost"}
SHORT |= {"unresolved": "too few test examples", "control": "no positive control"}
"""The kind of a reason, after an open verdict."""
LEGEND = """\
Brackets: the exact 95% interval of the median, or below six runs the range. For an order they are
those of the paired differences. We compare what is above the highest baseline on each side, at the
same sizes.

agrees: the interval, widened by the tolerance (±), meets the claim, or all differences of an order
  are above the tolerance.
differs: the interval does not meet it, or all differences are below minus the tolerance.
both at a baseline: a guess meets the published number, and ours is at our baseline too. Another
  scheme is clear of it.
uninformative: a guess meets the claim, as it meets any upper bound, and none of our schemes is
  clear of that guess in three runs or more. Or neither median of an order is clear of it. Or a
  scheme is at the baseline on every task, so that it has no rank.
not run: there is no such run, or those compared share no size beyond all that were trained on.
not attempted: the experiment is too dear to be run here.
open: our runs do not decide it, for the reason after the colon:
  not learned in training: the scheme behind has a median below 0.9 at a trained size. The models of
    the publication had learned theirs, or a prediction of ours assumes that ours have. An order at
    the trained sizes itself implies that the second scheme has not learned.
  not learned: our runs are at a baseline, and what is claimed is not.
  too few runs: an order takes six pairs, and the rejection of a number six runs. Three runs meet a
    number.
  both at the ceiling: no seeds decide it; the reason says how many steps each took.
  too wide: an interval that meets a number may be twice the tolerance plus 0.05 wide.

p: the exact two-sided sign test of an order, not corrected for how many orders there are.
baseline: the best guess at the same sizes. Clear of it means above it by three standard errors of
  the test set. † marks a published value that a baseline reaches, within the claim's tolerance.
error rates: compared by their logarithm, within a factor (×).
best of several runs: compared with the best of all our runs at every learning rate. Median,
  brackets and n are those of the chosen rate.
order of rates: for each seed, the largest learning rate at which the run neither diverged nor
  stayed at the baseline.
order of steps: the steps until the loss was that of 0.95 for each right token, if all runs came so
  far.
mean reciprocal rank: it leaves out tasks on which no scheme is clear of its baseline.
trapezoid: the published mean is over every size of a range. So the evaluated sizes are
  weighted by the trapezoid rule, for baselines too. Otherwise all sizes have equal weight.
counts: claims that say the same of the same runs, or repeat one number, are counted once.
setting: a verdict is about our setting. If that is smaller than the published one, "differs" means
  that the number does not carry over.
checked against: the paper or its authors' released runs; a copy, which others quote or derive from
  it; or not checked, where the claim is from memory."""
CHECKED: dict[Seen, str] = {"paper": "paper", "copy": "copy", "memory": "not checked"}
"""Where a published claim was seen, in words."""


def total(origin: str, counts: Mapping[str, int], claims: int) -> str:
    """Say how often each verdict was given to claims of one origin, with the number of claims in the tables."""
    facts = sum(counts.values())
    of = f"{claims}, counted as {facts}" if facts < claims else f"{claims}"
    return f"{CALLED[origin]}: {of}; {', '.join(f'{n} {verdict}' for verdict, n in counts.items())}."


def verdicts(counts: Mapping[str, int]) -> str:
    """How often each verdict was given, of those that were."""
    return ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n) or "none"


def tally(findings: Sequence[Reproduction]) -> str:
    """How many claims of each origin got each verdict."""
    counts, origins = count_verdicts(findings), [finding.published.origin for finding in findings]
    return " ".join(total(origin, of, origins.count(origin)) for origin, of in counts.items() if sum(of.values()))


def why_open(findings: Sequence[Reproduction]) -> str:
    """Say why claims are open, each fact once, the most frequent reason first; empty if no claim is."""
    causes = Counter(SHORT[finding.cause] for finding in distinct(findings) if finding.verdict == OPEN)
    each = ", ".join(f"{n} {cause}" for cause, n in causes.most_common())
    return f"Open: {each}." if each else ""


def chance(findings: Sequence[Reproduction]) -> str:
    """How many of the orders tested chance alone would decide; empty where none was tested."""
    tested, decided, expected = orders_by_chance(findings)
    if not tested:
        return ""
    least = min(finding.ours.n for finding in findings if finding.p is not None)
    return (
        f"Orders tested, with {LEAST} pairs of runs or more: {tested}, of which {decided} decided. If no two schemes "
        f"differed, chance would decide {expected:.1f} of them (each with p = {by_chance(least):.3f} at {least} pairs)."
    )


def sightings(counts: Mapping[Seen, int]) -> str:
    """Say how many published claims were checked against which kind of source."""
    return ", ".join(f"{n} {CHECKED[source]}" for source, n in counts.items() if n) or "none"


def block(finding: Reproduction, in_full: bool) -> list[str]:
    """Return a finding as lines of at most `WIDTH` columns, the verdict first; its claim alone unless `in_full`."""
    texts = row(finding)
    claim, verdict = f"{texts['scheme']} {texts['claim']}", texts["verdict"]
    if isinstance(order := finding.published, Order):
        claim = f"{order.first} {BETWEEN[order.about]} {order.second}"
        verdict += ": the other way round" * (finding.verdict == DIFFERS)
    marks = [f"n = {texts['n']}"] * (texts["n"] != "–") + [f"p = {texts['p']}"] * (texts["p"] != "–")
    baseline = [f"baseline {texts['baseline']}"] * (texts["baseline"] != "–")
    ours = ", ".join([texts["our runs"] if finding.ours.n else "no run", *marks])
    lines = [f"{verdict}: {texts['task']}, {claim}" + f" ({ours})" * (not in_full)]
    if in_full:
        lines += [f"ours: {ours}; {', '.join([texts['measure'], *baseline])}"]
        lines += [f"why: {finding.reason}"] * bool(finding.reason)
        origin = f"published ({texts['checked against']})" if finding.published.origin == "published" else "prediction"
        lines += [f"{origin}: {finding.published.source.removeprefix('ours: ')}"]
    indents = ("", *["  "] * (len(lines) - 1))
    filled = (
        textwrap.wrap(line, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)
        for line, indent in zip(lines, indents, strict=True)
    )
    return [line for wrapped in filled for line in wrapped]


def row(finding: Reproduction) -> dict[str, str]:
    """Return a finding as the texts of a row."""
    claim = finding.published
    return {
        "task": claim.task,
        "scheme": f"{claim.first} over {claim.second}" if isinstance(claim, Order) else claim.scheme,
        "measure": _measure(claim),
        "from": claim.origin,
        "checked against": CHECKED[claim.seen] if claim.seen else "–",
        "claim": _order(claim) if isinstance(claim, Order) else _number(claim, finding.explained),
        "our runs": _ours(finding) if finding.ours.n else "–",
        "n": str(finding.ours.n) if finding.ours.n else "–",
        "p": "–" if finding.p is None else f"{finding.p:.3f}",
        "baseline": "–" if finding.floor is None else f"{finding.floor:.2f}",
        "verdict": _verdict(finding),
        "reason": finding.reason,
        "source": claim.source,
    }


def _verdict(finding: Reproduction) -> str:
    if finding.verdict == DIFFERS and finding.better is not None:
        return f"{finding.verdict}: ours {'better' if finding.better else 'worse'}"
    cause = finding.verdict in (OPEN, NOT_ATTEMPTED) and SHORT.get(finding.cause)
    return f"{finding.verdict}: {cause}" if cause else finding.verdict


def _number(claim: Published, explained: bool) -> str:
    sign = {"is": "", "at least": "≥ ", "at most": "≤ "}[claim.relation]
    of = f"{claim.of} of {claim.runs}" if claim.runs else claim.of
    mark = " †" if explained else ""
    if claim.scale == "log":
        return f"error {claim.value:.3g} ({of}) ×{FACTOR:g}{mark}"
    return f"{sign}{claim.value:.3f} ({of}) ±{claim.tolerance:g}{mark}"


def _order(claim: Order) -> str:
    return {"score": "above", "rate": "larger rate", "steps": "fewer steps"}[claim.about]


def _ours(finding: Reproduction) -> str:
    claim, ours = finding.published, finding.ours
    if isinstance(claim, Order) and finding.rates is not None:
        rates = " against ".join("none" if rate == 0 else f"{rate:g}" for rate in finding.rates)
        return f"{rates}; {ours.median:+g} [{ours.low:+g}, {ours.high:+g}] rates"
    if isinstance(claim, Order) and claim.about == "steps":
        took = " against ".join(f"{steps:,.0f}" for steps in finding.steps or ()) or "not solved"
        return f"{took}; {ours.median:+,.0f} [{ours.low:+,.0f}, {ours.high:+,.0f}] steps"
    if isinstance(claim, Order):
        return f"{ours.median:+.3f} [{ours.low:+.3f}, {ours.high:+.3f}] ±{claim.tolerance:g}"
    if claim.scale == "log":
        bound = f", 0 means ≤ {finding.unseen:.2g}" if finding.unseen is not None and ours.low == 0 else ""
        return f"error {ours.median:.3g} [{ours.low:.3g}–{ours.high:.3g}]{bound}"
    best = "" if finding.best is None else f", best of {finding.best_of}: {finding.best:.3f}"
    return f"{ours.median:.3f} [{ours.low:.3f}–{ours.high:.3f}]{best}"


def _measure(claim: Published | Order) -> str:
    if claim.task == ALL:
        what = "reciprocal rank"
    else:
        own = "error rate" if isinstance(claim, Published) and claim.scale == "log" else "accuracy"
        what = {None: own, "exact": "whole answers", "last": "last token"}.get(claim.metric, claim.metric)
    if isinstance(claim, Order) and claim.about != "score":
        what = f"largest stable rate by {what}" if claim.about == "rate" else "steps until solved"
    where = claim.over if isinstance(claim.over, str) else f"size {', '.join(map(str, claim.over))}"
    return f"{what}, {where}" + (f", {claim.weights}" if claim.weights != "equal" else "")
