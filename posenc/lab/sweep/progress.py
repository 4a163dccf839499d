"""Who hears how far a sweep is, and the trials that other workers finish meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from posenc.lab.store import folder as store


class Progress(Protocol):
    """Who hears how far a sweep is."""

    def begin(self, trials: int, done: int, programs: int | None) -> None:
        """`trials` in all, of which `done` have results; the others need so many `programs`, if that is known."""

    def group(self, label: str, trials: int) -> None:
        """A group of trials starts."""

    def step(self, label: str, steps: int, total: int, loss: float) -> None:
        """A group has done so many of its steps; `loss` is the mean over its trials."""

    def finished(self, label: str, outcome: str, seconds: float) -> None:
        """A group has ended."""

    def taken(self, label: str) -> None:
        """Another worker took a group that had started here."""

    def others(self, trials: int) -> None:
        """So many trials in all have been finished by other workers since the sweep began."""

    def note(self, text: str) -> None:
        """Something worth a line."""


class Tally:
    """Counts the trials that other workers finished, by the names of records: a group's is the group's own."""

    def __init__(self, folder: Path, groups: Mapping[str, int]):
        self.recorded = store.Recorded(folder)
        done = self.recorded.names()
        self._left = {group: trials for group, trials in groups.items() if group not in done}
        self._others = 0

    def ours(self, group: str) -> None:
        """This worker ran a group."""
        self._left.pop(group, None)

    def others(self) -> int:
        """The trials that others have finished so far."""
        for group in self._left.keys() & self.recorded.names():
            self._others += self._left.pop(group)
        return self._others
