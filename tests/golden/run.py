"""One golden case against posenc, or the reason why it is not covered."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

import jax

import posenc
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


def agree(case: Case) -> int:
    """Compare a case with its reference; how many arrays were compared."""
    compare = adapter(case.family).compare
    case = case._replace(arrays=type(case.arrays)(case.arrays))
    with jax.enable_x64(case.double):
        checks = list(compare(case))
        for check in checks:
            check.verify()
    assert checks, f"the adapter of {case.family} compared nothing of {case.id}"
    assert not case.arrays.unread, f"nobody looked at {', '.join(sorted(case.arrays.unread))} of {case.id}"
    return len(checks)
