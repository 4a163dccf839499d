"""Stores of checkpoints that outlive a machine: a folder that several machines see, or a URL of an object store
(`epath`).

A store is named by a text, an absolute folder or a URL such as gs://bucket/runs/mine. Below it is `ckpt/`, as in a run
folder. An object store cannot rename, so that a checkpoint there is whole once its manifest is, which is written last.
Training works on a copy of the group's checkpoints in a folder of its own.
"""

from __future__ import annotations

import contextlib
import errno
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from posenc.lab.store import checkpoints, disk
from posenc.language.echo import echoed

STORES = ("gs://", "s3://", "az://")


def check(place: str) -> None:
    """Raise `ValueError` for what names no place."""
    if not place:
        raise ValueError("--checkpoints is empty; give a folder or URL that all nodes see, or leave it out.")
    if _is_url(place) and not place.startswith(STORES):
        raise ValueError(f"--checkpoints is {echoed(place)}; give a folder, or a URL of {', '.join(STORES)}.")


def place_of(place: str | None, folder: Path) -> str:
    """The place for the checkpoints of a run folder: the folder itself, or one of its name below the place given."""
    if place is None:
        return str(folder.absolute())
    return f"{place.rstrip('/')}/{folder.name}" if _is_url(place) else str(Path(place).absolute() / folder.name)


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
    names = [path.name for path in _path(place).iterdir()]
    return sorted(name for name in names if disk.NAME.fullmatch(name))


@contextlib.contextmanager
def home(place: str, group: str) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A folder with the checkpoints of a group while the block runs, and what to call after each change there."""
    if not _is_url(place):
        yield Path(place), lambda: None
        return
    with tempfile.TemporaryDirectory(prefix="posenc-") as name:
        near = Path(name)
        copy = Mirror(_path(place) / disk.check_name(group), disk.inside(near, checkpoints.FOLDER, group))
        copy.fetch()
        yield near, copy.send


class Mirror:
    """The checkpoints of a group in an object store, and their copy on this machine."""

    def __init__(self, far: Any, near: Path):
        self.far, self.near = far, near
        self._sent: set[str] = set()

    def fetch(self) -> None:
        """Copy those that are whole. The reader of the copy checks their files."""
        self.near.mkdir(parents=True, exist_ok=True)
        for path in self.far.iterdir() if self.far.exists() else ():
            if path.name.endswith(checkpoints.FAILED):
                (self.near / Path(path.name).name).write_bytes(path.read_bytes())
            elif checkpoints.NAME.fullmatch(path.name) and (path / checkpoints.MANIFEST).exists():
                _fetched(path, self.near / path.name)
            else:
                continue
            self._sent.add(path.name)

    def send(self) -> None:
        """Make the store hold what this machine does. Raises `OSError`."""
        try:
            here = {p.name: p for p in self.near.glob("*") if not p.name.startswith(".")} if self.near.exists() else {}
            for name in sorted(here.keys() - self._sent):
                _sent(here[name], self.far / name)
                self._sent.add(name)
            for name in sorted(self._sent - here.keys()):
                _removed(self.far / name)
                self._sent.remove(name)
        except Exception as error:  # each store has errors of its own
            raise OSError(errno.EIO, f"{self.far} refused: {_words(error)}") from error


def _fetched(far: Any, near: Path) -> None:
    text = (far / checkpoints.MANIFEST).read_bytes()
    try:
        files = [str(name) for name in json.loads(text)["files"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        files = []  # its reader names the damage
    inside = (n for n in files if ".." not in PurePosixPath(n).parts and not n.startswith("/") and (far / n).exists())
    _copied(far, near, (*inside, checkpoints.MANIFEST))


def _sent(near: Path, far: Any) -> None:
    if near.is_file():
        _copied(near.parent, far.parent, [near.name])
        return
    files = [path.relative_to(near).as_posix() for path in sorted(near.rglob("*")) if path.is_file()]
    _copied(near, far, sorted(files, key=lambda name: name == checkpoints.MANIFEST))


def _copied(source: Any, target: Any, names: Iterable[str]) -> None:
    """Copy files of these names, one after another."""
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes((source / name).read_bytes())


def _removed(far: Any) -> None:
    if far.name.endswith(checkpoints.FAILED):
        far.unlink(missing_ok=True)
        return
    (far / checkpoints.MANIFEST).unlink(missing_ok=True)
    if far.exists():
        far.rmtree()


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
