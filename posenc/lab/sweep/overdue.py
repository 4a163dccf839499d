"""A segment that does not end is named, once: a device or a library may hang, and a sweep would be silent for ever."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator

TIMES = 20
"""A segment is overdue after so many times its expected time, the mean of those before it."""
LEAST = 60.0
"""Seconds before which nothing is said: a machine may be busy for a while."""
COMPILING = 600.0
"""Seconds after which a segment is overdue that compiles first, of which nothing is known."""


class SegmentTimer:
    """The segments of one group in this process, each timed while it runs."""

    def __init__(self, say: Callable[[str], None]):
        self._say, self._count, self._seconds = say, 0, 0.0

    @contextlib.contextmanager
    def time(self, compiles: bool) -> Iterator[None]:
        """Around one segment. What is overdue is said by another thread, since the main one waits for the device."""
        if compiles or not self._count:
            limit, expected = COMPILING, "some minutes at most, compiling included,"
        else:
            mean = self._seconds / self._count
            limit, expected = max(LEAST, TIMES * mean), f"{mean:.2f} s, as those before took,"
        timer = threading.Timer(limit, self._overdue, (limit, expected))
        timer.daemon = True
        began = time.monotonic()
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
        if not compiles:
            self._count, self._seconds = self._count + 1, self._seconds + time.monotonic() - began

    def _overdue(self, seconds: float, expected: str) -> None:
        self._say(
            f"a segment has not ended in {seconds:.0f} s, and {expected} were expected; if no step follows, run"
            f" `kill -9 {os.getpid()}` on {socket.gethostname()}, since Ctrl-C waits for the segment, and repeat the"
            " command, which goes on from the newest checkpoint"
        )
