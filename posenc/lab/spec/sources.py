"""Files of schemes, tasks and other parts that posenc does not ship: their digests are part of a trial's identity.

The run of a plan and a record holds `{"sources": {"mine:Mine": SHA-256}}`, so that an edited file makes other trials.
Reading one imports nothing; to go on with such a run, import the module first. "file my.txt" and "corpus pydoc" are
texts that a task reads.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from posenc.coordinates import COORDINATES
from posenc.core.scheme import SCHEMES
from posenc.lab.models.kinds import MODELS
from posenc.lab.models.stems import STEMS
from posenc.lab.tasks.corpora import named_digest
from posenc.lab.tasks.task import TASKS

REGISTRIES = SCHEMES, COORDINATES, TASKS, STEMS, MODELS
SHOWN = 8
"""Digits of a digest that people compare."""


def of(parts: Iterable[Any]) -> dict[str, dict[str, str]]:
    """The classes of these parts that posenc does not ship and the texts that they read, each with the digest of its
    file, under "sources".

    Empty for what posenc ships, so that its trials keep their names. A task within a task counts too.
    """
    all_parts = _every(parts)
    digests = dict(source for part in all_parts for registry in REGISTRIES if (source := registry.source(type(part))))
    for part in all_parts:
        digests |= getattr(part, "texts", {})
    return {"sources": digests} if digests else {}


def own(parts: Iterable[Any]) -> list[type]:
    """The classes of these parts that posenc does not ship."""
    classes = [type(part) for part in _every(parts)]
    return [cls for cls in classes if any(registry.source(cls) for registry in REGISTRIES)]


def _every(parts: Iterable[Any]) -> list[Any]:
    """These parts, and the tasks within them."""
    outer = [*parts]
    return outer + [part.inner for part in outer if hasattr(part, "inner")]


def check(run: Mapping[str, Any]) -> None:
    """Refuse a stored run whose classes are not imported, or whose files are gone or have changed since. Raises
    `ValueError`."""
    which, before = f"{run.get('scheme')} on {run.get('task')}", run.get("sources") or {}
    if not isinstance(before, Mapping):
        raise ValueError(f"The sources of {which} are not a table of digests; restore the plan, or train again.")
    for name, digest in before.items():
        module, _, cls = name.partition(":")
        is_text = " " in name
        if not is_text and module not in sys.modules:
            raise ValueError(
                f"{which} was trained with {name!r}, and stored runs import nothing by themselves; if you trust that "
                f"file, add --import {module} to the command."
            )
        now = named_digest(name) if is_text else _digest(vars(sys.modules[module]).get(cls))
        if now != digest:
            had = f"its digest was {str(digest)[:SHOWN]} and is {now[:SHOWN] if now else 'none'}"
            called = f"text {name.partition(' ')[2]!r}" if is_text else f"file of {name!r}"
            raise ValueError(
                f"The {called} has changed since {which} was trained ({had}); restore it, or take other trials."
            )


def unchanged(run: Mapping[str, Any]) -> bool:
    """Tell whether `check` accepts a stored run."""
    try:
        check(run)
    except ValueError:
        return False
    return True


def _digest(cls: Any) -> str | None:
    return next((source[1] for registry in REGISTRIES if (source := registry.source(cls))), None)
