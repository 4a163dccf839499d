"""What a refusal of a name says at its end: the nearest name that exists, and some or all of the others."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

WHOLE = 12
"""So many names are all told."""
TOLD = 5
"""Of more, so many are told, the nearest."""


def offer(word: str, choices: Iterable[str], see: str = "") -> str:
    """The nearest of the known names, if one is near, and what is known; of a long list what to `see` for all of it.

    >>> offer("ropee", ["alibi", "rope"])
    " Did you mean 'rope'? Known: alibi, rope."
    """
    names = list(choices)
    bare = {name.lstrip("-"): name for name in names}
    near = difflib.get_close_matches(word.lstrip("-"), bare, 1, 0.5)
    hint = f" Did you mean {bare[near[0]]!r}?" if near else ""
    all_of_them = f"; {see}" if see and len(names) > WHOLE else ""
    return f"{hint} Known: {shorten(word, names)}{all_of_them}."


def shorten(word: str, choices: Iterable[str]) -> str:
    """All of a few names; of a long list the nearest ones and how many more there are."""
    names = list(choices)
    if len(names) <= WHOLE:
        return ", ".join(names)
    bare = {name.lstrip("-"): name for name in names}
    nearest = [bare[name] for name in difflib.get_close_matches(word.lstrip("-"), bare, TOLD, 0.0)]
    return f"{', '.join(nearest)} and {len(names) - len(nearest)} more"
