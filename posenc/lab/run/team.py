"""Workers as processes of one machine, each pinned to cores or to a GPU before jax is imported.

This module imports no jax, and the process that starts the workers touches no device, so that a GPU's memory is all
theirs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from posenc.lab.results.standing import finished
from posenc.lab.run.signals import DONE, FAILED, PARENT, exit_code, handling

PAUSES = 2.0, 60.0
"""Seconds between two looks at groups that other workers hold: at first, and at most. Many workers wait at once."""
MEMORY = 0.9
"""The share of a GPU's memory that its workers have between them."""


class Place(NamedTuple):
    """Cores and devices of one worker."""

    cores: tuple[int, ...]
    environment: Mapping[str, str]
    """Variables that it has beside those of this process."""


def places(workers: int | None, cores: Sequence[int], gpus: Sequence[str]) -> list[Place]:
    """Return one place for each worker. Without a number there is one for each GPU, or without one for every two cores.

    Cores are dealt in runs of neighbours. Workers share GPUs, or cores, if there are more of them.
    """
    count = workers or len(gpus) or max(1, len(cores) // 2)
    all_places = []
    for n in range(count):
        environment = {}
        if gpus:
            environment["CUDA_VISIBLE_DEVICES"] = gpus[n % len(gpus)]
            sharing = -(-count // len(gpus))
            if sharing > 1:
                environment["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{MEMORY / sharing:.3f}"
        own = cores[n * len(cores) // count : (n + 1) * len(cores) // count] or (cores[n % len(cores)],)
        all_places.append(Place(tuple(own), environment))
    return all_places


def cores() -> tuple[int, ...]:
    """The cores that this process may use: all of the machine where the system does not pin processes."""
    pins = hasattr(os, "sched_getaffinity")
    return tuple(sorted(os.sched_getaffinity(0)) if pins else range(os.cpu_count() or 1))


def gpus() -> tuple[str, ...]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them, or all that the driver lists."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return tuple(filter(None, (name.strip() for name in named.split(","))))
    query = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    try:
        listed = subprocess.run(query, capture_output=True, text=True, timeout=30)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return ()
    return tuple(listed.stdout.split()) if listed.returncode == 0 else ()


def started(command: Sequence[str], where: Place) -> subprocess.Popen:
    """A worker at its place; its errors can be read, and it ends when this process is gone."""
    parent = {PARENT: str(os.getpid())} if os.name == "posix" else {}  # elsewhere nothing tells of a parent's end
    environment = {**os.environ, **parent, **where.environment}
    pins = hasattr(os, "sched_setaffinity")
    before = os.sched_getaffinity(0) if pins else set()
    try:
        if pins:  # a child has the cores of its parent from its first instruction on
            os.sched_setaffinity(0, where.cores)
        return subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
    finally:
        if pins:
            os.sched_setaffinity(0, before)


def together(command: Sequence[str], where: Iterable[Place], folder: Path, say: Callable[[str], None]) -> int:
    """Run the command at every place until all have ended; their lines are said with their numbers.

    Signals are passed on. Returns the exit code: that of a signal, or what the run folder says afterwards; where work
    is left, that of the worker that fared worst.
    """
    children, heard = [started(command, place) for place in where], []

    def pass_on(number: int, _: object) -> None:
        heard.append(number)
        for child in children:
            if child.poll() is None:
                child.send_signal(number)

    with handling(pass_on, signal.SIGINT):
        errors = [(child.stderr, n, say) for n, child in enumerate(children, 1)]
        readers = [threading.Thread(target=_repeat, args=args, daemon=True) for args in errors]
        for reader in readers:
            reader.start()
        codes = [child.wait() for child in children]
        for n, code in enumerate(codes, 1):
            if code < 0:
                say(f"Worker {n} was killed by signal {-code}; the others take over its group.")
        for reader in readers:
            reader.join()
    if heard:
        return exit_code(heard[0])
    return outcome(folder) and max(FAILED, *codes)


def outcome(folder: Path) -> int:
    """The exit code of a run folder whose workers have ended: done where no trial lacks a result that it is to have."""
    return DONE if finished(folder) else FAILED


def failure(error: Exception) -> str:
    """The outcome of a group that raised this."""
    return "oom" if "RESOURCE_EXHAUSTED" in str(error) else "failed"


def command(words: Sequence[str]) -> list[str]:
    """A command of posenc, run by this Python."""
    return [sys.executable, "-m", "posenc", *words]


def _repeat(lines: IO[str], number: int, say: Callable[[str], None]) -> None:
    with lines:
        for line in lines:
            say(f"[{number}] {line.rstrip()}")
