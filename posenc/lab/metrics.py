"""Metrics: which counts of a record each divides. No jax."""

import math
from collections.abc import Mapping

NATS = "nats"
"""The count of a loss."""
NAMES = {"token": "accuracy", "error": "accuracy"}
"""The metric of a task to the name of its share among all metrics."""
LOSSES = {NATS: 1.0, "bits": math.log(2)}
"""The metrics that are losses, each with its unit in nats."""
GAIN = "gain"
"""The metric of a source whose least loss is known: the share of what the law of one token leaves to gain."""
PARTS = 1024
"""Parts of a nat in which cross-entropy is counted, so that its sums are whole numbers, in whatever order they are
made."""
RIGHT = {
    "token": ("correct", "scored"),
    "accuracy": ("correct", "scored"),  # of CLASSIFY: one scored slot in a row
    "error": ("correct", "scored"),
    "exact": ("exact", "rows"),
    "last": ("last", "rows"),
    "beyond": ("beyond", "beyond_scored"),
    GAIN: ("gained", "gainable"),
}
"""The counts that a metric divides, of those that are shares of what was right."""
_RATIOS = RIGHT | dict.fromkeys(LOSSES, (NATS, "scored"))


def share(counts: Mapping[str, int], metric: str) -> float:
    """Return the share that was right by a metric, or the mean loss; NaN if nothing was counted."""
    right, total = right_and_total(counts, metric)
    return right / (total * PARTS * LOSSES[metric] if metric in LOSSES else total) if total else math.nan


def merit(metric: str, value: float) -> float:
    """Return a value that is larger if the result is better, also for metrics where less is better."""
    return -value if metric in LOSSES else value


def right_and_total(counts: Mapping[str, int], metric: str) -> tuple[int, int]:
    """How many were right by a metric, or parts of a nat, and of how many."""
    part, total = ratio(metric)
    if scored_nothing(counts):
        return 0, 0
    return counts.get(part, 0), counts.get(total) or 0


def scored_nothing(counts: Mapping[str, int]) -> bool:
    """Tell whether examples were counted without any scored token, so that no share of them is known."""
    return counts.get("scored") == 0


def ratio(metric: str) -> tuple[str, str]:
    """The names of the counts that a metric divides."""
    return _RATIOS.get(metric, ("correct", "scored"))
