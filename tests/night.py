"""Which cases of a test stand for all by day; the others take their turn at night (`-m nightly`)."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def by_day(every: Iterable[Any], chosen: Collection[Any]) -> list[Any]:
    """Every case, for `parametrize`: the chosen as they are, the rest left to the night. A tuple is one of several
    arguments."""
    late = lambda one: pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=pytest.mark.nightly)  # noqa: E731
    return [one if one in chosen else late(one) for one in every]
