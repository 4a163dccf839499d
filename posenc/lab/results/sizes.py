"""One set of sizes for all that is compared on a task, though its records were trained or evaluated at different ones.

A run that is trained further on longer texts is beyond its training at other sizes than its neighbours; means over
sizes of their own would compare lengths and not schemes. No jax.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal


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
