"""Values as messages repeat them: at most 60 characters, so that the sentence around them is read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

MOST = 60


def plural(number: int, noun: str) -> str:
    """ "1 trial", "2 trials"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def lasting(seconds: float) -> str:
    """A time for people: "48 s", "2 min 05 s", "3 h 20 min"."""
    total = max(0, round(seconds))
    if total < 60:
        return f"{total} s"
    return (
        f"{total // 60} min {total % 60:02d} s" if total < 3600 else f"{total // 3600} h {total % 3600 // 60:02d} min"
    )


def cut(text: str) -> str:
    """A text of at most 60 characters."""
    return text if len(text) <= MOST else text[: MOST - 3] + "..."


def echoed(value: Any) -> str:
    """The `repr` of a value, cut; Python refuses to write numbers of thousands of digits at all."""
    if isinstance(value, str):
        return repr(cut(value))
    try:
        return cut(repr(value))
    except ValueError:
        return "a number of thousands of digits"


WHOLE = 12
"""Show up to this many names in full."""
TOLD = 5
"""Beyond that, show this many nearest names."""


def offer(word: str, choices: Iterable[str], see: str = "") -> str:
    """The nearest of the known names, if one is near, and what is known; of a long list what to `see` for all of it.

    >>> offer("ropee", ["alibi", "rope"])
    " Did you mean 'rope'? Known: alibi, rope."
    """
    names = list(choices)
    without_dashes = {name.lstrip("-"): name for name in names}
    near = difflib.get_close_matches(word.lstrip("-"), without_dashes, 1, 0.5)
    hint = f" Did you mean {without_dashes[near[0]]!r}?" if near else ""
    all_of_them = f"; {see}" if see and len(names) > WHOLE else ""
    return f"{hint} Known: {shorten(word, names)}{all_of_them}."


def shorten(word: str, choices: Iterable[str]) -> str:
    """All of a few names; of a long list the nearest ones and how many more there are."""
    names = list(choices)
    if len(names) <= WHOLE:
        return ", ".join(names)
    without_dashes = {name.lstrip("-"): name for name in names}
    nearest = [without_dashes[name] for name in difflib.get_close_matches(word.lstrip("-"), without_dashes, TOLD, 0.0)]
    return f"{', '.join(nearest)} and {len(names) - len(nearest)} more"
