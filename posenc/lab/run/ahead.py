"""A thread that compiles what the next group needs while one trains: XLA takes one core, and lets Python go on.

A part that has begun is waited for; one that has not is left to the call that needs it. So nothing is compiled twice,
and what fails here fails again, with its message, where the group is trained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait


class Compiler:
    """Compiles parts of groups in one thread, in the order in which they come."""

    def __init__(self):
        self._thread = ThreadPoolExecutor(1, "compile")
        self._parts: dict[tuple[str, str], Future[None]] = {}

    def begin(self, group: str, parts: Mapping[str, Callable[[], None]]) -> None:
        """Compile these parts of a group, one after another, but for those that were begun before."""
        for part, compiling in parts.items():
            if (group, part) not in self._parts:
                self._parts[group, part] = self._thread.submit(compiling)

    def settle(self, group: str, part: str) -> None:
        """Wait for a part that is being compiled, or take it back, before its programs are called."""
        future = self._parts.get((group, part))
        if future is not None and not future.cancel():
            wait([future])

    def close(self) -> None:
        """Take back what has not begun, and wait for the rest."""
        self._thread.shutdown(cancel_futures=True)
