"""One golden case against posenc, or the reason why it is not covered."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

import jax

import posenc
from posenc.core.scheme import Scheme
from tests.golden.case import Case, NotCovered


def adapter(family: str) -> ModuleType:
    """The module that knows how a family's arguments are said in posenc."""
    name = f"tests.golden.adapters.{family}"
    if importlib.util.find_spec(name) is None:
        raise NotCovered("the family has no adapter")
    module = importlib.import_module(name)
    missing = sorted(set(module.schemes) - set(posenc.names()))
    if missing:
        raise NotCovered(f"no scheme is called {', '.join(missing)}")
    return module


class Agreement(NamedTuple):
    """What a comparison found: the schemes that were made for it, and the largest difference of its arrays."""

    schemes: list[str]
    largest: float


def agree(case: Case) -> Agreement:
    """Compare a case with its reference."""
    module = adapter(case.family)
    case = case._replace(arrays=type(case.arrays)(case.arrays))
    with jax.enable_x64(case.double), _noticed() as made:
        checks = list(module.compare(case))
        for check in checks:
            check.verify()
    assert checks, f"the adapter of {case.family} compared nothing of {case.id}"
    assert not case.arrays.unread, f"nobody looked at {', '.join(sorted(case.arrays.unread))} of {case.id}"
    return Agreement(sorted(made & set(module.schemes)), max(check.difference for check in checks))


@contextlib.contextmanager
def _noticed() -> Iterator[set[str]]:
    """The names of the schemes that are made meanwhile."""
    made: set[str] = set()
    whole = Scheme.__post_init__

    def noticing(self):
        made.add(getattr(self, "name", ""))
        whole(self)

    Scheme.__post_init__ = noticing
    try:
        yield made
    finally:
        Scheme.__post_init__ = whole
