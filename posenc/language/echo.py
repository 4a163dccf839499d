"""Values as messages repeat them: at most 60 characters, so that the sentence around them is read."""

from __future__ import annotations

from typing import Any

MOST = 60


def plural(number: int, noun: str) -> str:
    """ "1 trial", "2 trials"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


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
