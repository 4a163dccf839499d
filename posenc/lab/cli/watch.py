"""Progress of a sweep on stderr: a moving bar on a terminal, one line per event elsewhere; both say how long is left.

What is left is reckoned from the trials finished since the start, those under way counted by their steps.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from posenc.lab.cli.output import clean, lasting, terminal

EVERY = 10.0


class Watch:
    """What a sweep tells of its progress; says one line per event."""

    def __init__(self):
        self.total = self.before = self.finished_trials = 0
        self.sizes: dict[str, int] = {}
        self.parts: dict[str, float] = {}
        self.started = self.spoken = time.monotonic()

    def begin(self, trials: int, done: int, programs: int) -> None:
        """A sweep starts, `done` of its trials finished earlier, the rest in so many programs."""
        self.total, self.before, self.started = trials, done, time.monotonic()
        been = f", {done} of them done earlier" if done else ""
        self.note(f"{trials} trials{been}; {programs} run{'s' * (programs != 1)} to compile")

    def group(self, label: str, trials: int) -> None:
        """Some trials of one run start."""
        self.sizes[label], self.parts[label] = trials, 0.0
        self.note(f"{label}: {trials} trial{'s' * (trials != 1)}")

    def step(self, label: str, steps: int, total: int, loss: float) -> None:
        """Those trials have come so far."""
        self.parts[label] = steps / max(total, 1)
        if time.monotonic() - self.spoken >= EVERY and steps < total:
            self.note(f"{label}: step {steps} of {total}, loss {loss:.3g}{self.left()}")

    def finished(self, label: str, outcome: str, seconds: float) -> None:
        """Those trials are over: done, diverged, failed, ..."""
        self.finished_trials += self.sizes.pop(label, 0)
        self.parts.pop(label, None)
        count = f"{self.before + self.finished_trials} of {self.total} trials"
        self.note(f"{label}: {outcome} after {lasting(seconds)}; {count}{self.left()}")

    def note(self, text: str) -> None:
        """Anything else worth a line."""
        self.spoken = time.monotonic()
        print(clean(text), file=sys.stderr, flush=True)

    def left(self) -> str:
        """How long is left, as the end of a line; empty while nothing is known."""
        passed = self.finished_trials + sum(self.sizes[k] * part for k, part in self.parts.items() if k in self.sizes)
        rest = self.total - self.before - passed
        if not passed or rest <= 0:
            return ""
        return f"; about {lasting((time.monotonic() - self.started) / passed * rest)} left"


class Bar(Watch):
    """The same as one moving bar, with a line for each group that is over."""

    def __init__(self, progress: Any):
        super().__init__()
        self.progress, self.task = progress, progress.add_task("compiling", total=None)

    def begin(self, trials, done, programs):
        super().begin(trials, done, programs)
        self.progress.update(self.task, total=trials, completed=done)

    def group(self, label, trials):
        self.sizes[label], self.parts[label] = trials, 0.0
        self._move(f"{label}: compiling")

    def step(self, label, steps, total, loss):
        self.parts[label] = steps / max(total, 1)
        self._move(f"{label}: step {steps} of {total}, loss {loss:.3g}{self.left()}")

    def finished(self, label, outcome, seconds):
        super().finished(label, outcome, seconds)
        self._move("")

    def note(self, text):
        from rich.text import Text

        self.progress.console.print(Text(clean(text)))

    def _move(self, text: str) -> None:
        running = sum(self.sizes[k] * part for k, part in self.parts.items())
        done = self.before + self.finished_trials + running
        self.progress.update(self.task, completed=done, description=clean(text))


@contextlib.contextmanager
def watching() -> Iterator[Watch]:
    """The progress that suits where stderr goes."""
    if not terminal(sys.stderr):
        yield Watch()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    words = TextColumn("{task.description}", markup=False)
    with Progress(BarColumn(30), words, console=Console(stderr=True), transient=True) as progress:
        yield Bar(progress)
