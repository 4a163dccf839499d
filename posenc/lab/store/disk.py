"""Files that are whole or absent, inside a folder that nothing can leave: names, atomic writes, one error for the disk.

A write goes to a temporary file beside its target, is synced and renamed over it. Then the folder is synced. A kill at
any time leaves the old file or the new one. Readers ignore names that start with a dot.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import time
from pathlib import Path
from typing import BinaryIO

from posenc.language.echo import echoed

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
PARTS = ("records", "claims", "params", "errors", "events")
ABANDONED = 3600.0
LARGEST = 2**30
"""Bytes of the largest file that is read."""
_REASONS = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "the disk quota is used up; free some space",
    errno.EROFS: "the file system is read-only; choose another folder",
    errno.EACCES: "permission is denied; choose another folder",
    errno.EPERM: "permission is denied; choose another folder",
}


class DiskError(OSError):
    """Refusal of the disk: full, read-only or forbidden. Everything stored before is whole; the command line exits
    74."""


def check_name(name: str) -> str:
    """The name itself, if it can name a run, a group or a file without leaving its folder."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(
            f"{echoed(name)} cannot be a name here; take 1 to 64 letters, digits, '.', '_', '-', no dot first."
        )
    return name


def root() -> Path:
    """Return the folder of run folders: `runs`, or what POSENC_RUNS says."""
    return Path(os.environ.get("POSENC_RUNS") or "runs")


def inside(folder: Path, *parts: str) -> Path:
    """A path below the run folder. Links on the way are refused, since they could lead out of it."""
    path = Path(folder)
    for part in parts:
        path = path / check_name(part)
        if path.is_symlink():
            raise ValueError(f"{_shown(path)} is a link; a run folder holds plain files only, so remove it.")
    return path


def create(name: str) -> Path:
    """The run folder of a name, ready to be written to, or an error before anything is computed."""
    return ready(root() / check_name(name))


def ready(folder: Path) -> Path:
    """Return the folder, with its parts, once it is known that files can be written there."""
    if folder.is_symlink():
        raise ValueError(f"{_shown(folder)} is a link; choose another name, or let POSENC_RUNS say where runs live.")
    for place in (folder.parent, folder):
        if place.exists() and not place.is_dir():
            raise ValueError(f"{_shown(place)} is a file, but a folder is to be written there; choose another name.")
    with guarded(folder):
        for part in PARTS:
            inside(folder, part).mkdir(parents=True, exist_ok=True)
            for leftover in abandoned(folder / part):
                with contextlib.suppress(OSError):
                    leftover.unlink()
        write(inside(folder, "writable"), b"")
        inside(folder, "writable").unlink(missing_ok=True)  # another process may start at this moment
    return folder


def check_writable(folder: Path) -> None:
    """Raise `DiskError` where a run folder cannot be written or made, before anything is written or computed."""
    place = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    if not os.access(place, os.W_OK):
        read_only = hasattr(os, "statvfs") and os.statvfs(place).f_flag & os.ST_RDONLY
        with guarded(folder):
            raise OSError(errno.EROFS if read_only else errno.EACCES, "")


def find(text: str | os.PathLike) -> Path:
    """An existing run folder or bundle: a path as it stands, or a name below `root()`."""
    typed = Path(text)
    for path in ([root() / typed] if NAME.fullmatch(str(text)) else []) + [typed]:
        if path.exists():
            return path
    names = sorted(p.name for p in root().iterdir() if p.is_dir()) if root().is_dir() else []
    has = f"{_shown(root())} holds {', '.join(names[:8])}" if names else f"{_shown(root())} holds no runs yet"
    raise ValueError(f"There are no results at {str(text)!r}; {has}.")


def opened(path: Path, largest: float = LARGEST) -> BinaryIO:
    """A plain file to read. A pipe or a device, which may never end, is refused by `ValueError`."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # else a pipe waits for its writer
    status, why = os.fstat(descriptor), ""
    if not stat.S_ISREG(status.st_mode):
        why = "is not a plain file; remove it"
    elif status.st_size > largest:
        why = f"has {status.st_size} bytes; at most {largest} are read"
    if why:
        os.close(descriptor)
        raise ValueError(f"{_shown(path)} {why}.")
    return os.fdopen(descriptor, "rb")


def content(path: Path) -> bytes:
    """Return the content of a plain file."""
    with opened(path) as file:
        return file.read()


def part(folder: Path, name: str) -> list[Path]:
    """The files in a part of a run folder, by name, without those that start with a dot; a part may be missing."""
    place = inside(folder, name)
    if place.exists() and not place.is_dir():
        raise ValueError(f"{_shown(place)} is a file, but a run folder has a folder there; restore it, or remove it.")
    names = os.listdir(place) if place.exists() else []
    return [place / name for name in sorted(names) if not name.startswith(".")]


def write(path: Path, content: bytes) -> Path:
    """Put a whole file in place, or leave what was there. No temporary file survives an error."""
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}.tmp")
    with guarded(path):
        try:
            with open(temporary, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        sync(path.parent)
    return path


def sync(folder: Path) -> None:
    """Let a rename in this folder survive a power cut, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def guarded(path: Path):
    """Turn what the disk refuses into one sentence that says where and what to do."""
    try:
        yield
    except DiskError:
        raise
    except OSError as error:
        if error.errno not in _REASONS:
            raise
        reason = _REASONS[error.errno]
        raise DiskError(error.errno, f"{_shown(path)} cannot be written: {reason} and run again.") from error


def reason(error: OSError) -> str:
    """Why the disk refused, in a few words."""
    text = _REASONS.get(error.errno or 0, error.strerror or type(error).__name__)
    return text.partition(";")[0]


def _shown(path: Path) -> str:
    return repr(str(path))


def abandoned(folder: Path) -> list[Path]:
    """Temporary files that a kill left in a folder long ago; younger ones may belong to a live writer."""
    leftovers = []
    for leftover in folder.glob(".*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > ABANDONED:
                leftovers.append(leftover)
    return leftovers
