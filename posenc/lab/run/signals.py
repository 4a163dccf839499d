"""Signals that end a sweep: training stops after the segment, is saved, and the same command goes on.

A parent that passes signals on to its workers may be killed by one that cannot be passed on. Its workers then end as if
it had been: nobody would hear them, and nobody would end them.
"""

from __future__ import annotations

import os
import signal

PREEMPTED, INTERRUPTED = 75, 130
PREEMPTING = tuple(getattr(signal, n) for n in ("SIGTERM", "SIGUSR1", "SIGUSR2", "SIGHUP") if hasattr(signal, n))
"""What batch systems and closed terminals send."""
PARENT = "POSENC_PARENT"
"""The variable in which a worker is told the process that started it; one that was started by hand has none."""


class Stopped(Exception):
    """A signal requested the end; nothing recorded is lost."""


class Signals:
    """The first signal ends after the segment; only a second SIGINT ends at once, since schedulers repeat theirs."""

    def __init__(self):
        self.code = 0
        self._interrupted = False

    def __enter__(self) -> Signals:
        self._before = {s: signal.signal(s, self._heard) for s in (signal.SIGINT, *heeded())}
        return self

    def __exit__(self, *exc):
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _heard(self, number, frame):
        if number == signal.SIGINT and self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = self._interrupted or number == signal.SIGINT
        self.code = self.code or (INTERRUPTED if number == signal.SIGINT else PREEMPTED)

    def check(self) -> None:
        """Raise where a signal was heard, or where the parent that would pass one on is gone."""
        if not self.code and _orphaned():
            self.code = PREEMPTED
        if self.code:
            raise Stopped


def _orphaned() -> bool:
    """Whether the parent of this worker is gone: the system has given it another."""
    return os.environ.get(PARENT, str(os.getppid())) != str(os.getppid())


def heeded() -> tuple[signal.Signals, ...]:
    """The signals that mean the end here: `nohup` has SIGHUP ignored, and it stays so."""
    return tuple(s for s in PREEMPTING if signal.getsignal(s) != signal.SIG_IGN)
