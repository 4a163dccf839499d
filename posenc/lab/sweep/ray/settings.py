"""What is requested of Ray, and whether it can be had: each answer is one sentence, before anything is planned."""

from __future__ import annotations

import importlib.util
import math
import re
import socket
from dataclasses import dataclass

from posenc.lab.store import places
from posenc.language.echo import echoed

AUTO = "auto"
PATIENCE = 5.0
"""Seconds in which an address must answer."""
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):(\d{1,5})")
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""The first bytes of a client of HTTP/2 and its empty settings, which a server answers by its own."""
_SETTINGS = 4


@dataclass(frozen=True)
class Ray:
    """A cluster, and what each group of trials gets of it."""

    address: str = AUTO
    """HOST:PORT of its head, or auto for the cluster that runs on this machine."""
    cpus: int = 1
    """Cores of a group, and its host devices where it trains on the CPU."""
    gpus: float = 0
    """GPUs of a group; a part of one, such as 0.5, shares it."""
    checkpoints: str | None = None
    """A folder or URL that outlives a node. Default: the run folder, where the nodes see it."""

    def __post_init__(self):
        if self.address != AUTO:
            parsed(self.address)
        if self.cpus < 1:
            raise ValueError(f"--ray.cpus is {self.cpus}; give a whole number from 1 up.")
        if not (0 <= self.gpus < math.inf) or (self.gpus > 1 and self.gpus % 1):
            raise ValueError(f"--ray.gpus is {self.gpus:g}; give a whole number from 0 up, or a part of 1 such as 0.5.")
        if self.checkpoints is not None:
            places.check(self.checkpoints)


def parsed(address: str) -> tuple[str, int]:
    """Host and port. Raises `ValueError`."""
    found = _ADDRESS.fullmatch(address)
    if found is None or not 1 <= int(found[2]) <= 65535:
        raise ValueError(f"--ray.address is {echoed(address)}; give {AUTO} or HOST:PORT, as `ray start --head` prints.")
    return found[1].strip("[]"), int(found[2])


def check_installed() -> None:
    """Raise `ValueError` without the extra."""
    if importlib.util.find_spec("ray") is None:
        raise ValueError("--engine ray needs Ray, which is not installed: pip install 'posenc[ray]'.")


def check_answers(address: str, patience: float = PATIENCE) -> None:
    """Raise `ValueError` where no head of Ray answers, after `patience`; Ray itself waits for minutes."""
    try:
        with socket.create_connection(parsed(address), timeout=patience) as line:
            line.settimeout(patience)
            line.sendall(_HELLO)
            answer = line.recv(9)
    except TimeoutError:
        why = f"does not answer within {patience:g} s"
    except OSError as error:
        why = f"does not answer ({error.strerror or error})"
    else:
        if answer[3:4] == bytes((_SETTINGS,)):
            return
        why = "answers, but is not the head of a Ray cluster"
    raise ValueError(f"--ray.address {address} {why}; give the HOST:PORT that `ray start --head` printed.")
