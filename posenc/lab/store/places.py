"""Stores of checkpoints that outlive a machine: a folder that several machines see, or a URL of an object store
(`epath`).

A store is named by a text, an absolute folder or a URL such as gs://bucket/runs/mine. Below it is `ckpt/`, as in a run
folder. Training at a URL works on a copy of the group's checkpoints in a folder of its own.
"""

from __future__ import annotations

import contextlib
import errno
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from posenc.lab.store import checkpoints, disk
from posenc.language.echo import echoed

STORES = ("gs://", "s3://", "az://")


def check(given: str) -> None:
    """Raise `ValueError` for what names no place."""
    if not given:
        raise ValueError("--checkpoints is empty; give a folder or URL that all nodes see, or leave it out.")
    if _is_url(given) and not given.startswith(STORES):
        raise ValueError(f"--checkpoints is {echoed(given)}; give a folder, or a URL of {', '.join(STORES)}.")


def place_of(given: str | None, folder: Path) -> str:
    """The place for the checkpoints of a run folder: the folder itself, or one of its name below the place given."""
    if given is None:
        return str(folder.absolute())
    return f"{given.rstrip('/')}/{folder.name}" if _is_url(given) else str(Path(given).absolute() / folder.name)


def offer(place: str, token: str) -> None:
    """Leave a sign by which others see that a place is the same for them. Raises `ValueError` or `DiskError`."""
    try:
        with disk.guarded(Path(place)):
            _path(place).mkdir(parents=True, exist_ok=True)
            _sign(place, token).write_text(token)
    except disk.DiskError:
        raise
    except Exception as error:  # each store has errors of its own
        raise ValueError(f"--checkpoints {echoed(place)} cannot be used: {_words(error)}.") from error


def withdraw(place: str, token: str) -> None:
    """Remove the sign."""
    _sign(place, token).unlink(missing_ok=True)


def unseen(place: str, token: str) -> str:
    """Why this machine does not see the sign; empty where it does."""
    try:
        seen = _sign(place, token).exists() and _sign(place, token).read_text() == token
    except Exception as error:  # each store has errors of its own
        return f"{place} cannot be read from every node ({_words(error)})"
    return "" if seen else f"{place} is not seen by every node"


def drop(place: str, group: str) -> None:
    """Remove the checkpoints of a group."""
    if not _is_url(place):
        checkpoints.drop_group(Path(place), group)
    elif (far := _path(place) / disk.check_name(group)).exists():
        far.rmtree()


def groups(place: str) -> list[str]:
    """The groups that have checkpoints there."""
    found = [path.name for path in _path(place).iterdir()]
    return sorted(name for name in found if disk.NAME.fullmatch(name))


@contextlib.contextmanager
def home(place: str, group: str) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A folder with the checkpoints of a group while the block runs, and what to call after each change there. That
    raises `OSError` where a store does not take the change."""
    if not _is_url(place):
        yield Path(place), lambda: None
        return
    with tempfile.TemporaryDirectory(prefix="posenc-") as name:
        far, near = _path(place) / disk.check_name(group), disk.inside(Path(name), checkpoints.FOLDER, group)
        near.mkdir(parents=True)
        for path in far.iterdir() if far.exists() else ():
            if checkpoints.NAME.fullmatch(path.name) and path.is_file():  # its reader says whether it is whole
                (near / path.name).write_bytes(path.read_bytes())
        sent = {path.name for path in near.iterdir()}

        def send() -> None:
            nonlocal sent
            here = {path.name for path in near.glob("[!.]*")}
            try:
                far.mkdir(parents=True, exist_ok=True)
                for new in sorted(here - sent):
                    (far / new).write_bytes((near / new).read_bytes())
                for gone in sent - here:
                    (far / gone).unlink(missing_ok=True)
            except Exception as error:  # each store has errors of its own
                raise OSError(errno.EIO, f"{far} refused: {_words(error)}") from error
            sent = here

        yield Path(name), send


def _is_url(place: str) -> bool:
    return "://" in place


def _path(place: str) -> Any:
    """The folder of all groups."""
    if not _is_url(place):
        return disk.inside(Path(place), checkpoints.FOLDER)
    from etils import epath

    return epath.Path(place) / checkpoints.FOLDER


def _sign(place: str, token: str) -> Any:
    return _path(place) / f".{token}.tmp"


def _words(error: Exception) -> str:
    """The first line of what an error says."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].removesuffix(".")
