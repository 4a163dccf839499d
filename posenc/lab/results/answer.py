"""The answer in words: whether the claims of an experiment hold here, how far, and which runs would decide the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from posenc.lab.results.evidence import REPEATS, Evidence
from posenc.lab.results.published import ALL, ORIGINS
from posenc.lab.results.reproduction import (
    AGREES,
    BOTH,
    DIFFERS,
    NOT_ATTEMPTED,
    NOT_RUN,
    OPEN,
    UNINFORMATIVE,
    Reproduction,
)
from posenc.lab.results.verdicts import count_verdicts, distinct

SAYS = {
    AGREES: ("agrees", "agree"),
    DIFFERS: ("differs", "differ"),
    OPEN: ("is open", "are open"),
    BOTH: ("is at a floor on both sides", "are at a floor on both sides"),
    UNINFORMATIVE: ("is uninformative", "are uninformative"),
    NOT_RUN: ("was not run", "were not run"),
    NOT_ATTEMPTED: ("was not attempted here", "were not attempted here"),
}
"""A verdict as a verb, of one claim and of several."""
CALLED = {"published": "published claim", "ours": "claim of our own"}
REMEDIES = {
    "few": "more learning rates",
    "equal": "harder or longer examples, since both schemes are equal on these",
    "ceiling": "harder or longer examples, or a claim about steps, since both schemes solve these",
    "unresolved": "more test examples",
    "uncounted": "a record that counts the metric",
    "missing": "runs that the record lacks",
    "unshared": "evaluations at sizes and places that the compared runs share",
    "control": f"{REPEATS} runs of the scheme that is clear of a guess",
}
"""What would decide a claim, by the kind of its reason; for other reasons more seeds."""
LEARNING = ("floor", "unlearned", "untrained")
"""Reasons for which a scheme has to learn more."""


def answer(findings: Sequence[Reproduction], evidence: Evidence | None) -> str:
    """Whether the claims hold here, in how far, and what would decide the rest; empty where nothing is claimed.

    Published claims decide whether it holds, and our own only where nothing was published.
    """
    if not findings:
        return ""
    if evidence is None:
        return f"Whether the claim holds here is not known: it {SAYS[findings[0].verdict][0]}."
    return " ".join(filter(None, (whether_it_holds(findings), _what_decides(findings, evidence))))


def whether_it_holds(findings: Sequence[Reproduction]) -> str:
    """Whether the claims hold here, and how many of each kind have which verdict, in a sentence."""
    counts = {origin: tally for origin, tally in count_verdicts(findings).items() if sum(tally.values())}
    first = next(origin for origin in ORIGINS if origin in counts)
    subject = "the claim" if first == "published" else "our own claim"
    pieces = [f"of {_many(sum(tally.values()), CALLED[origin])} {_counts(tally)}" for origin, tally in counts.items()]
    sentence = f"{_holds(counts[first], subject)}: {'; '.join(pieces)}."
    return sentence[0].upper() + sentence[1:]


def _holds(tally: Mapping[str, int], subject: str) -> str:
    agree, decided, total = tally[AGREES], tally[AGREES] + tally[DIFFERS], sum(tally.values()) - tally[BOTH]
    if not decided:
        return f"these runs do not decide {subject}"
    if not agree:
        return f"{subject} does not hold here"
    if agree < decided:
        return f"{subject} holds here in part"
    if 2 * decided < total:
        return "these runs decide little of it, and that little holds here"
    return f"{subject} holds here" + (" as far as these runs decide it" if decided < total else "")


def _counts(tally: Mapping[str, int]) -> str:
    pieces = [f"{n} {SAYS[verdict][n > 1]}" for verdict, n in tally.items() if n]
    return " and ".join(filter(None, (", ".join(pieces[:-1]), pieces[-1])))


def _what_decides(findings: Sequence[Reproduction], evidence: Evidence) -> str:
    """Which runs are missing: seeds, then what each other reason asks for, then learning rates. No run decides what was
    published at a floor."""
    rest = [finding for finding in distinct(findings) if finding.verdict not in (AGREES, DIFFERS, BOTH)]
    seeds = sorted(Counter(finding.needs for finding in rest if finding.needs).items())
    has = {needs: sorted({f.ours.n for f in rest if f.needs == needs}) for needs, _ in seeds}
    wanted = [(f"at least {needs} seeds in place of {' or '.join(map(str, has[needs]))}", n) for needs, n in seeds]
    wanted += Counter(_remedy(finding, evidence) for finding in rest if not finding.needs).items()
    parts = [f"{what} ({_many(n, 'claim')})" for what, n in wanted]
    pieces = [f"the rest would take {'; '.join(parts)}"] if wanted else []
    pieces += _untuned(
        [finding for finding in findings if finding.cause in ("apart", *LEARNING) and finding.verdict != BOTH], evidence
    )
    sentence = "; ".join(pieces)
    return f"{sentence[0].upper()}{sentence[1:]}." if pieces else ""


def _untuned(findings: Sequence[Reproduction], evidence: Evidence) -> list[str]:
    """The learning rate at which all runs of these claims' tasks trained, if there was one alone."""
    tasks, alone = {task for finding in findings for task in _tasks(finding, evidence)}, dict[float, list[str]]()
    for task, rates in evidence.rates_tried.items():
        if task in tasks and len(rates) == 1:
            alone.setdefault(rates[0], []).append(task)
    if len(alone) == 1 and {rate for rates in evidence.rates_tried.values() for rate in rates} == {*alone}:
        return [f"all runs had one learning rate, {next(iter(alone)):g}, and others may change the verdicts"]
    each = [f"on {', '.join(names)} all runs had one learning rate, {rate:g}" for rate, names in sorted(alone.items())]
    return [f"{'; '.join(each)}, and others may change the verdicts there"] if each else []


def _tasks(finding: Reproduction, evidence: Evidence) -> list[str]:
    return evidence.tasks if finding.published.task == ALL else [finding.published.task]


def _remedy(finding: Reproduction, evidence: Evidence) -> str:
    """What would decide a claim for which more seeds are not known to be enough."""
    if finding.cause not in LEARNING:
        return REMEDIES.get(finding.cause, "more seeds")
    tasks = _tasks(finding, evidence)
    return f"more than {max(map(evidence.steps, tasks)):,} steps, or another learning rate, on {', '.join(tasks)}"


def _many(n: int, what: str) -> str:
    """A count of claims: 1 claim, 2 claims of our own."""
    return f"{n} {what if n == 1 else what.replace('claim', 'claims')}"
