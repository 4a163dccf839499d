"""Cores of its own for a process that Ray started, since Ray counts cores but lets every process use all of them.

A process takes a core by binding a name to it in the kernel (an abstract socket), which ends with the process however
that ends. Where more cores are requested on a machine than it has, processes share them.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Sequence

from posenc.lab.sweep import team


def pin(count: int) -> int:
    """Limit this thread, and those that it starts, to so many cores; returns how many it has."""
    if not hasattr(os, "sched_setaffinity"):
        return min(count, len(team.cores()))
    pinned = chosen(team.cores(), count, _taken)
    os.sched_setaffinity(0, pinned)
    return len(pinned)


def chosen(cores: Sequence[int], count: int, take: Callable[[int], bool]) -> list[int]:
    """So many of the cores: those that can be taken, and then others. All of them where there are fewer."""
    own: list[int] = []
    for core in cores:
        if len(own) < count and take(core):
            own.append(core)
    shared = [core for core in cores if core not in own]
    return own + shared[: count - len(own)]


def _taken(core: int) -> bool:
    """Take a core until this process ends; False if another process of this user has it."""
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0posenc/{os.getuid()}/core/{core}")
    except OSError as error:
        name.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    name.detach()
    return True
