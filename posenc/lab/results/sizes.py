"""One set of sizes for all schemes compared on a task, though records were trained or evaluated at different ones.

A run that is trained further on longer texts is beyond its training at other sizes than its neighbours. Means over
sizes of their own would compare lengths and not schemes. No jax.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Iterable, Sequence
from typing import Literal, get_args


def shared(
    over: Literal["beyond", "trained"], trained: Iterable[tuple[int, ...]], measured: Iterable[Collection[int]]
) -> tuple[int, ...]:
    """The sizes at which all were measured: those longer than any trained on, or those within all trained ranges."""
    ranges, size_sets = list(trained), [set(sizes) for sizes in measured]
    if not ranges or not size_sets:
        return ()
    low, high = (max, min) if over == "trained" else (min, max)
    first, last = low(start for start, _ in ranges), high(end for _, end in ranges)
    common = sorted(set.intersection(*size_sets))
    return tuple(n for n in common if (first <= n <= last if over == "trained" else n > last))


def other_places(firsts: Iterable[int | None]) -> str:
    """Why runs by the metric `beyond` cannot be compared, if the first place beyond training is not the same for all;
    else nothing."""
    places = sorted({first for first in firsts if first is not None})
    if len(places) < 2:
        return ""
    return f"'beyond' counts the tokens from {' or '.join(map(str, places))} on, as each run was trained"


Rule = Literal["equal", "trapezoid"]


def check_rule(rule: Rule) -> None:
    """Raise `ValueError` for an unknown rule."""
    if rule not in get_args(Rule):
        raise ValueError(f"{rule!r} weights no sizes; give {' or '.join(map(repr, get_args(Rule)))}.")


def average(values: Sequence[float], sizes: Sequence[int], rule: Rule) -> float:
    """The mean of values at ascending sizes; of a single size its value, by either rule.

    Papers report means over every size of a range. Where a few of them are evaluated, more of the short ones than of
    the long, a plain mean favours the short. The trapezoid rule is the mean of straight lines from each to the next.
    """
    check_rule(rule)
    shares = [1.0] * len(sizes)
    if rule == "trapezoid" and len(sizes) > 1:
        before, after = [sizes[0], *sizes[:-1]], [*sizes[1:], sizes[-1]]
        shares = [(b - a) / 2 for a, b in zip(before, after, strict=True)]
    return math.fsum(map(operator.mul, shares, values)) / math.fsum(shares)
