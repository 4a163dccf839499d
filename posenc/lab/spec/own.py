"""Schemes and tasks of the user's own in a run: a fault is reported before the run trains, by file and line.

A fault of these fails its own group alone. A fault in what posenc ships is refused before a sweep begins.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from posenc.lab.spec import modules, sources
from posenc.lab.tasks import Task
from posenc.lab.tasks.checks import fault_of_examples

LISTED = 200
"""Characters of an error that are repeated."""


class Malformed(ValueError):
    """An own task gives examples that cannot be trained on."""

    def __init__(self, task: Task, fault: str):
        super().__init__(f"the task {task.name!r} gives examples that cannot be trained on: {fault}")
        self.task = task


def check_task(task: Task, sizes: Iterable[int]) -> None:
    """Raise `Malformed` if a batch of an own task at one of these sizes is malformed, or scores nothing."""
    if sources.own([task]) and (fault := _fault(task, tuple(sorted({*sizes})))):
        raise Malformed(task, fault)


@functools.lru_cache(maxsize=64)
def _fault(task: Task, sizes: tuple[int, ...]) -> str:
    return fault_of_examples(task, sizes)


@contextlib.contextmanager
def forgiving(parts: Iterable[Any]) -> Iterator[None]:
    """Go on after an error where one of these parts is the user's own: it fails when its turn comes."""
    try:
        yield
    except Exception:
        if not sources.own(parts):
            raise


def place_of(error: BaseException, parts: Iterable[Any] = ()) -> str:
    """Return the file and line of the user's in which an error arose, or else those of the first own class of these
    parts. Empty where no file of the user's has a part in it."""
    chain = list(_chain(error))
    homes = (getattr(sys.modules.get(name), "__file__", None) for name in modules.imported())
    files = {os.path.abspath(path) for path in homes if path}
    frames = [frame for each in chain for frame in traceback.extract_tb(each.__traceback__)]
    inside = [(frame.filename, frame.lineno) for frame in frames if os.path.abspath(frame.filename) in files]
    if inside:
        return _place(*inside[-1])
    classes = sources.own([*(each.task for each in chain if isinstance(each, Malformed)), *parts])
    return _place_of_class(classes[0]) if classes else ""


def described(error: BaseException) -> str:
    """Return an error as the end of a sentence; of a `ValueError`, which posenc words, its text alone."""
    text = " ".join(str(error).split()).rstrip(".")
    return text if isinstance(error, ValueError) else f"{type(error).__name__}: {text[:LISTED]}"


def failed(error: Exception, parts: Sequence[Any] = ()) -> tuple[str, str]:
    """Return why a group failed, and its traceback, each with the line of the user's own that is at fault."""
    where = "" if "RESOURCE_EXHAUSTED" in str(error) else place_of(error, parts)
    why = f"{type(error).__name__}: {' '.join(str(error).split())[:LISTED]}" + (f" ({where})" if where else "")
    return why, f"{''.join(traceback.format_exception(error)).rstrip()}\n\n{why}\n"


def _place_of_class(cls: type) -> str:
    """The file and line of a class; empty where it was made without a source."""
    try:
        path, line = inspect.getsourcefile(cls), inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        return ""
    return _place(path, line) if path else ""


def _place(path: str, line: int | None) -> str:
    """A file, as seen from the working folder where it is inside, and a line."""
    inside = Path(path).is_relative_to(Path.cwd())
    return f"{Path(path).relative_to(Path.cwd()) if inside else path}, line {line}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The causes of an error, the first one first, and itself."""
    if error is not None:
        yield from _chain(error.__cause__)
        yield error
