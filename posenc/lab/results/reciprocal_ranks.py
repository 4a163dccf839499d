"""Mean reciprocal ranks: one over the rank of a scheme among all schemes, averaged over tasks. No jax.

Papers report it because it is free of scale, so that a small setting can be compared with a large one.
"""

from __future__ import annotations

import numpy as np

from posenc.lab.results.evidence import Evidence
from posenc.lab.results.published import Measure, Published
from posenc.lab.results.statistics import summary
from posenc.lab.results.ties import levels


def reciprocal_ranks(claim: Published, evidence: Evidence) -> dict[int, float]:
    """Return seed to the mean, over tasks, of one over the scheme's rank among all schemes. Equals share the mean rank,
    and so do all that are at the floor. A scheme that is at the floor on all these tasks has none.

    A task on which no scheme is clear of the floor ranks noise, so that it is left out.
    """
    measures = [] if claim.scheme in unranked(claim, evidence) else live(claim, evidence)
    of: dict[int, list[float]] = {}
    for measure in measures:
        by_scheme = {scheme: _clear(measure, scheme, evidence) for scheme in evidence.schemes(measure.task)}
        for seed in set.intersection(*map(set, by_scheme.values())) if claim.scheme in by_scheme else ():
            values = levels([by_seed[seed] for by_seed in by_scheme.values()])
            ours = values[list(by_scheme).index(claim.scheme)]
            rank = 1 + sum(v > ours for v in values) + (sum(v == ours for v in values) - 1) / 2
            of.setdefault(seed, []).append(1 / rank)
    return {seed: float(np.mean(ranks)) for seed, ranks in sorted(of.items()) if len(ranks) == len(measures)}


def _clear(measure: Measure, scheme: str, evidence: Evidence) -> dict[int, float]:
    """Seed to the value of each run at the chosen rate; the same, below all others, for each that is at the floor."""
    values = evidence.values_at_chosen_rate(measure, scheme)
    return {seed: value if evidence.above(measure, scheme, value) else -1.0 for seed, value in values.items()}


def unranked(claim: Published, evidence: Evidence) -> set[str]:
    """The schemes whose median is at the floor on every task that has a scheme clear of it: they tie, and have no
    rank."""
    measures = live(claim, evidence)
    everywhere = set[str].intersection(*(set(evidence.schemes(m.task)) for m in measures)) if measures else set[str]()

    def learned(measure: Measure, scheme: str) -> bool:
        return evidence.above(measure, scheme, summary(evidence.values_at_chosen_rate(measure, scheme).values()).median)

    return {scheme for scheme in everywhere if not any(learned(m, scheme) for m in measures)}


def live(claim: Published, evidence: Evidence) -> list[Measure]:
    """Return the tasks, as a claim over all tasks measures them, on which some scheme is clear of the floor. Few runs
    suffice, since a rank of few runs is open."""
    measures = [evidence.settled(claim.measure._replace(task=task)) for task in evidence.tasks]
    return [measure for measure in measures if evidence.clear(measure, repeats=1)]
