"""Progress of a sweep on stderr: a moving bar on a terminal, one line per event elsewhere. Both show the time left."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from posenc.lab.cli.output import clean, terminal
from posenc.lab.run.progress import Progress


class Watch(Progress):
    """Prints one line for each event."""

    def note(self, text: str) -> None:
        """Print a line. Training outlives the terminal that it was started from."""
        super().note(text)
        with contextlib.suppress(OSError):
            print(clean(text), file=sys.stderr, flush=True)


class Bar(Progress):
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
def watching() -> Iterator[Progress]:
    """A bar if stderr is a terminal, lines otherwise."""
    if not terminal(sys.stderr):
        yield Watch()
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Moving

    words = TextColumn("{task.description}", markup=False)
    progress = Moving(BarColumn(30), words, console=Console(stderr=True), transient=True)
    progress.start()
    try:
        yield Bar(progress)
    finally:
        with contextlib.suppress(OSError):  # the terminal may be gone
            progress.stop()
