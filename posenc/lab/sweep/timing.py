"""Candidates timed in turn: a, b, c, a, b, c.

Only ratios of medians of one such run are worth comparing: a shared machine varies by a third within a minute, and all
candidates meet the same minute. Nothing here needs jax, so that candidates may as well live in processes of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

WIDE = 1.5
"""Rounds of which the slowest took this many times the fastest differ too much to be quoted."""


def alternated(goes: Sequence[Callable[[], float]], rounds: int) -> list[list[float]]:
    """The seconds that each says it took, round after round; the first round warms up and is not counted."""
    seconds: list[list[float]] = [[] for _ in goes]
    for n in range(rounds + 1):
        for times, go in zip(seconds, goes, strict=True):
            took = go()
            if n:
                times.append(took)
    return seconds


def noisy(seconds: Sequence[float]) -> bool:
    """Whether rounds differ too much to be quoted."""
    return bool(seconds) and max(seconds) > WIDE * min(seconds)
