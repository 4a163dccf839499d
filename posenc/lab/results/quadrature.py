"""How a few sizes stand for all between them: each alike, or by the trapezoid rule. No jax.

Papers report means over every size of a range. Where a few of them are evaluated, more of the short ones than of the
long, a plain mean favours the short. The trapezoid rule is the mean of straight lines from each size to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

Rule = Literal["equal", "trapezoid"]


def check(rule: Rule) -> None:
    """Raise `ValueError` for an unknown rule."""
    if rule not in get_args(Rule):
        raise ValueError(f"{rule!r} weights no sizes; give {' or '.join(map(repr, get_args(Rule)))}.")


def average(values: Sequence[float], sizes: Sequence[int], rule: Rule) -> float:
    """The mean of values at ascending sizes; of a single size its value, by either rule."""
    check(rule)
    shares = [1.0] * len(sizes)
    if rule == "trapezoid" and len(sizes) > 1:
        before, after = [sizes[0], *sizes[:-1]], [*sizes[1:], sizes[-1]]
        shares = [(b - a) / 2 for a, b in zip(before, after, strict=True)]
    return sum(share * value for share, value in zip(shares, values, strict=True)) / sum(shares)
