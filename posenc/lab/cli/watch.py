"""Progress of a sweep on stderr: a moving bar on a terminal, one line per event elsewhere. Both show the time left.

The time left follows from all that was done since the sweep began, by whomever, compiling and evaluation included.
Until the first trials finish, the speed of their steps is all that is known, and the estimate is marked as rough.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from posenc.lab.cli.output import clean, lasting, terminal
from posenc.language.echo import plural

EVERY = 10.0


class Watch:
    """Receives the events of a sweep and prints one line for each."""

    def __init__(self):
        self.total = self.before = self.finished_trials = self.by_others = 0
        self.sizes: dict[str, int] = {}
        self.parts: dict[str, float] = {}
        """Group to the part of its steps that is done."""
        self.first: dict[str, tuple[float, float]] = {}
        """Group to the time and the part of its first report, after which its program is compiled."""
        self.started = self.spoken = time.monotonic()

    def begin(self, trials: int, done: int, programs: int | None) -> None:
        """Start a sweep or its next stage. `done` of its trials finished earlier, and the others need `programs`
        programs."""
        self.total, self.before, self.started = trials, done, time.monotonic()
        self.finished_trials = self.by_others = 0
        earlier = f", {done} of them done earlier" if done else ""
        left = "" if programs is None else f"; {plural(programs, 'program')} to compile"
        self.note(f"{plural(trials, 'trial')}{earlier}{left}")

    def group(self, label: str, trials: int) -> None:
        """Some trials of one run start."""
        self._start(label, trials)
        self.note(f"{label}: {trials} trial{'s' * (trials != 1)}")

    def step(self, label: str, steps: int, total: int, loss: float) -> None:
        """Trials of one run reached a step."""
        self._reach(label, steps / max(total, 1))
        if time.monotonic() - self.spoken >= EVERY and steps < total:
            self.note(f"{label}: step {steps} of {total}, loss {loss:.3g}{self.left()}")

    def finished(self, label: str, outcome: str, seconds: float) -> None:
        """Trials of one run ended: done, diverged, failed, ..."""
        self.finished_trials += self.sizes.get(label, 0)
        self._forget(label)
        count = f"{self.before + self.finished_trials + self.by_others} of {self.total} trials"
        self.note(f"{label}: {outcome} after {lasting(seconds)}; {count}{self.left()}")

    def taken(self, label: str) -> None:
        """Another worker took the trials of a run that had started here."""
        self._forget(label)
        self.note(f"{label}: taken by another worker while this one was silent; stopped here")

    def others(self, trials: int) -> None:
        """Hear how many trials other workers have finished since the sweep began."""
        self.by_others = trials

    def note(self, text: str) -> None:
        """Print any other line. Training outlives the terminal that it was started from."""
        self.spoken = time.monotonic()
        with contextlib.suppress(OSError):
            print(clean(text), file=sys.stderr, flush=True)

    def left(self) -> str:
        """The time left, as the end of a line; empty until it is known or if nothing is left."""
        now, part = time.monotonic(), sum(self.sizes[label] * part for label, part in self.parts.items())
        done = self.finished_trials + self.by_others + part
        rest = self.total - self.before - done
        if rest <= 0:
            return ""
        if self.finished_trials or self.by_others:
            return f"; about {lasting(max((now - self.started) * rest / done, 1))} left"
        since = {k: (now - at, self.parts[k] - before) for k, (at, before) in self.first.items() if now > at}
        speed = sum(self.sizes[k] * gained / seconds for k, (seconds, gained) in since.items())
        return f"; roughly {lasting(rest / speed)} left, and then evaluation" if speed else ""

    def _forget(self, label: str) -> None:
        for kept in (self.sizes, self.first, self.parts):
            kept.pop(label, None)

    def _start(self, label: str, trials: int) -> None:
        self.sizes[label], self.parts[label] = trials, 0.0

    def _reach(self, label: str, part: float) -> None:
        self.parts[label] = part
        self.first.setdefault(label, (time.monotonic(), part))


class Bar(Watch):
    """One moving bar instead, with a line for each group of trials that ended."""

    def __init__(self, progress: Any):
        super().__init__()
        self.progress, self.task = progress, progress.add_task("compiling", total=None)

    def begin(self, trials, done, programs):
        super().begin(trials, done, programs)
        self.progress.update(self.task, total=trials, completed=done)

    def group(self, label, trials):
        self._start(label, trials)
        self._move(f"{label}: compiling")

    def step(self, label, steps, total, loss):
        self._reach(label, steps / max(total, 1))
        self._move(f"{label}: step {steps} of {total}, loss {loss:.3g}{self.left()}")

    def finished(self, label, outcome, seconds):
        super().finished(label, outcome, seconds)
        self._move("")

    def taken(self, label):
        super().taken(label)
        self._move("")

    def note(self, text):
        from rich.text import Text

        with contextlib.suppress(OSError):
            self.progress.console.print(Text(clean(text)))

    def _move(self, text: str) -> None:
        running = sum(self.sizes[k] * part for k, part in self.parts.items())
        done = self.before + self.finished_trials + self.by_others + running
        self.progress.update(self.task, completed=done, description=clean(text))


@contextlib.contextmanager
def watching() -> Iterator[Watch]:
    """A bar if stderr is a terminal, lines otherwise."""
    if not terminal(sys.stderr):
        yield Watch()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    words = TextColumn("{task.description}", markup=False)
    progress = Progress(BarColumn(30), words, console=Console(stderr=True), transient=True)
    progress.start()
    try:
        yield Bar(progress)
    finally:
        with contextlib.suppress(OSError):  # the terminal may be gone
            progress.stop()
