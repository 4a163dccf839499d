"""A scheme or a task of results, in any spelling that a sweep takes. jax is imported only where texts alone differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from posenc.lab.results.words import label_parts
from posenc.language import grammar


def scheme(text: str, labels: Iterable[str]) -> str:
    """Return the label that a text means, however it is spelled; the text itself where there is none.

    >>> scheme("rope(base=5e5)", ["nope", "rope(base=500000.0)"])
    'rope(base=500000.0)'
    """
    return _chosen(text, labels, _scheme_meant)


def task(text: str, labels: Iterable[str]) -> str:
    """Return the task of results that a text means, however it is spelled; the text itself where there is none."""
    return _chosen(text, labels, _task_meant)


def _chosen(text: str, labels: Iterable[str], meant: Callable[[str], str]) -> str:
    has = list(labels)
    if text in has:
        return text
    name, settings = label_parts(text)
    by_name = {_written(label_parts(label)[0]): label for label in has if label_parts(label)[1] == settings}
    for spelled in (_written, meant):
        if (label := by_name.get(spelled(name))) is not None:
            return label
    return text


def _written(text: str) -> str:
    """The text without differences of spaces, quotes and forms of numbers; unchanged unless it is one name."""
    try:
        return grammar.write(grammar.read(text))
    except ValueError:
        return text


def _scheme_meant(text: str) -> str:
    from posenc.lab.run.plan import shortest

    return _meant(text, shortest)


def _task_meant(text: str) -> str:
    from posenc.lab import tasks

    return _meant(text, lambda text: tasks.spec(tasks.parse(text)))


def _meant(text: str, shortest: Callable[[str], str]) -> str:
    """The shortest text of the same meaning; the modules that a typed text names are imported."""
    from posenc.lab.cli.machine import start
    from posenc.lab.spec.modules import load_named

    start()
    try:
        load_named([text])
        return shortest(text)
    except (ValueError, TypeError):  # it names nothing that is known here
        return text
