"""A thread that compiles what the next group needs while one trains: XLA takes one core, and lets Python go on.

A part that has begun is waited for; one that has not is left to the call that needs it. So nothing is compiled twice,
and what fails here fails again, with its message, where the group is trained.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait

from posenc.lab.run.signals import COMPILES


class Compiler:
    """Compiles parts of groups in one thread, in the order in which they come."""

    def __init__(self):
        self._waiting: queue.SimpleQueue[tuple[Future[None], Callable[[], None]] | None] = queue.SimpleQueue()
        self._parts: dict[tuple[str, str], Future[None]] = {}
        self._thread: threading.Thread | None = None

    def begin(self, group: str, parts: Mapping[str, Callable[[], None]]) -> None:
        """Compile these parts of a group, one after another, but for those that were begun before."""
        if self._thread is None:  # a daemon: XLA cannot be interrupted, and Ctrl-C does not wait for it
            self._thread = threading.Thread(target=self._run, name=COMPILES, daemon=True)
            self._thread.start()
        for part, compiling in parts.items():
            if (group, part) not in self._parts:
                self._parts[group, part] = future = Future[None]()
                self._waiting.put((future, compiling))

    def settle(self, group: str, part: str) -> None:
        """Wait for a part that is being compiled, or take it back, before its programs are called."""
        future = self._parts.get((group, part))
        if future is not None and not future.cancel():
            wait([future])

    def close(self) -> None:
        """Take back what has not begun; what is being compiled is left to its thread."""
        for future in self._parts.values():
            future.cancel()
        self._waiting.put(None)

    def _run(self) -> None:
        while (job := self._waiting.get()) is not None:
            future, compiling = job
            if future.set_running_or_notify_cancel():
                try:
                    compiling()
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(None)
