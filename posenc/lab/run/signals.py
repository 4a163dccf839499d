"""Signals that end work, and the exit codes that say so. Importing this costs nothing.

The first signal ends after the segment, whose state is saved, and the same command goes on. A parent passes signals on
to its workers. If the parent is killed, its workers stop after the current segment.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator

DONE, FAILED = 0, 1
PREEMPTED, INTERRUPTED = 75, 130
PREEMPTING = tuple(getattr(signal, n) for n in ("SIGTERM", "SIGUSR1", "SIGUSR2", "SIGHUP") if hasattr(signal, n))
"""Signals of batch systems and of closed terminals."""
COMPILES = "posenc-compile"
"""The thread that compiles ahead, for which the end of the process does not wait."""
PARENT = "POSENC_PARENT"
"""The variable in which a worker is told the process that started it; one that was started by hand has none."""


class Stopped(Exception):
    """A signal requested the end of training; nothing recorded is lost."""


class Preempted(BaseException):
    """A signal of a batch system before training started or after it ended; the same command goes on."""


def heeded() -> tuple[signal.Signals, ...]:
    """The signals that mean the end here: `nohup` has SIGHUP ignored, and it stays so."""
    return tuple(s for s in PREEMPTING if signal.getsignal(s) != signal.SIG_IGN)


@contextlib.contextmanager
def handling(handler: Callable[[int, object], None], *more: signal.Signals) -> Iterator[None]:
    """Have the heeded signals, and `more`, handled so while the block runs."""
    before = {number: signal.signal(number, handler) for number in (*more, *heeded())}
    try:
        yield
    finally:
        for number, handler_before in before.items():
            signal.signal(number, handler_before)


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Let a signal end the process with an exit code of its own while the block runs. While the process trains, the
    sweep listens instead."""
    for number in heeded():
        signal.signal(number, preempt)
    try:
        yield
    finally:
        _ignore()


def preempt(number: int, frame: object) -> None:
    """End the command; further signals mean the same."""
    _ignore()
    raise Preempted


def _ignore() -> None:
    for number in heeded():
        signal.signal(number, signal.SIG_IGN)


class Signals:
    """Signals heard while training: only a second SIGINT ends at once, since schedulers repeat their signals."""

    def __init__(self):
        self.code = 0
        self._interrupted = False

    def __enter__(self) -> Signals:
        self._handling = handling(self._heard, signal.SIGINT)
        self._handling.__enter__()
        return self

    def __exit__(self, *exc):
        self._handling.__exit__(None, None, None)

    def _heard(self, number, frame):
        if number == signal.SIGINT and self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = self._interrupted or number == signal.SIGINT
        self.code = self.code or exit_code(number)

    def check(self) -> None:
        """Raise where a signal was heard, or where the parent that would pass one on is gone."""
        if not self.code and os.environ.get(PARENT, str(os.getppid())) != str(os.getppid()):
            self.code = PREEMPTED  # the system has given this worker another parent
        if self.code:
            raise Stopped


def exit_code(number: int) -> int:
    """The exit code of a process that this signal ended."""
    return INTERRUPTED if number == signal.SIGINT else PREEMPTED
