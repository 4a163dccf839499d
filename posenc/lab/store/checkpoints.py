"""Checkpoints: a group of trials in the midst of training, on disk. Bytes by Orbax, and a manifest of checksums.

    ckpt/<group>/<step>.<token>/{manifest.json, state/}

A checkpoint is whole or absent, and holds no path that leaves its folder. The token is that of the worker's claim, so
that two workers which both believe that they own a group never write to one place. Reading executes nothing.

A trial is one row of bytes, its arrays one after another. As many small arrays, Orbax takes longer, and on a disk that
fills meanwhile it prints a traceback for each.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from posenc.lab.store import disk
from posenc.lab.store.records import canonical

FOLDER, MANIFEST, STATE, FAILED = "ckpt", "manifest.json", "state", ".failed"
NAME = re.compile(r"(\d{1,10})\.[0-9a-f]{16}")
EVERY = 300.0
"""Seconds between two checkpoints of a group, unless requested otherwise."""
FULL = (errno.ENOSPC, errno.EDQUOT)
CHUNK, UNIT, BESIDE = 2**26, 2**20, 2**16
"""Bytes that Orbax writes at once; of what larger rows are a multiple, since it looks for a divisor; of its own files,
with room to round them up."""
_TYPES = {"step": int, "stage": int, "program": dict, "ids": list, "leaves": list, "losses": dict, "seconds": dict}


@dataclass(frozen=True)
class Manifest:
    """What a checkpoint holds, apart from its bytes."""

    step: int
    """Steps that are done."""
    stage: int
    """The stage of training that the state belongs to, from 0."""
    program: Mapping[str, Any]
    """What decides the numbers of further training; only an equal program may go on."""
    ids: tuple[str, ...]
    """The trials, in the order of the rows."""
    leaves: tuple[str, ...]
    """The name, type and shape of each array of a trial, in the order of its bytes."""
    losses: Mapping[str, list[float | None]]
    """Trial to its mean loss in each segment; null where it was not finite."""
    seconds: Mapping[str, float]
    """Phase to the seconds that it took so far, over all restarts."""


def save(folder: Path, group: str, token: str, about: Manifest, rows: np.ndarray) -> Path:
    """Keep a checkpoint, whole or not at all; returns its place. Raises `DiskError` where the disk is full."""
    import orbax.checkpoint as ocp

    target = disk.inside(folder, FOLDER, group, f"{about.step}.{token}")
    if target.is_dir():
        return target
    fresh = target.with_name(f".{target.name}.tmp")
    try:
        with disk.guarded(target), _unlogged():
            fresh.mkdir(parents=True)
            with ocp.PyTreeCheckpointer() as writer:
                args = {STATE: ocp.SaveArgs(chunk_byte_size=CHUNK)}
                writer.save((fresh / STATE).resolve(), {STATE: rows}, save_args=args)
            (fresh / STATE / "commit_success.txt").unlink(missing_ok=True)  # it holds a path of this machine
            disk.write(fresh / MANIFEST, _sealed(about, _sums(fresh)))
            disk.sync(fresh)
            fresh.rename(target)
            disk.sync(target.parent)
    except ValueError as error:  # how Orbax reports a full disk
        if "No space left" not in str(error):
            raise
        raise disk.DiskError(errno.ENOSPC, f"{str(target)!r} cannot be written: the disk is full.") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def found(folder: Path, group: str) -> list[Path]:
    """The checkpoints of a group, those with fewer steps first, whether readable or not."""
    places = disk.inside(folder, FOLDER, group).glob("*")
    return sorted((p for p in places if NAME.fullmatch(p.name)), key=lambda p: (step_of(p), p.name))


def step_of(path: Path) -> int:
    """The steps that a checkpoint's name says."""
    return int(path.name.partition(".")[0])


def manifest(path: Path) -> Manifest:
    """What a checkpoint says of itself. Raises `ValueError` with the reason if it is damaged in any file."""
    if path.is_symlink():
        raise ValueError("it is a link")
    content = _content(path / MANIFEST)
    body = {key: value for key, value in content.items() if key != "sha256"}
    if content.get("sha256") != _sum(canonical(body).encode()):
        raise ValueError(f"{MANIFEST} does not match its checksum")
    for name, kind in (_TYPES | {"files": dict}).items():
        if type(body.get(name)) is not kind:
            raise ValueError(f"{MANIFEST} needs {name!r} as {kind.__name__}")
    if body["step"] != step_of(path):
        raise ValueError(f"{MANIFEST} is of step {body['step']}")
    expected, present = body["files"], _sums(path)
    if wrong := sorted(n for n in expected.keys() | present.keys() if expected.get(n) != present.get(n)):
        what = "is missing" if wrong[0] not in present else "does not match its checksum"
        raise ValueError(f"{wrong[0]} {what}")
    made = {f.name: body[f.name] for f in fields(Manifest)}
    return Manifest(**made | {name: tuple(made[name]) for name in ("ids", "leaves")})


def rows(path: Path) -> np.ndarray:
    """The bytes of each trial, of a checkpoint whose manifest was read."""
    import orbax.checkpoint as ocp

    with ocp.PyTreeCheckpointer() as reader:
        args = {STATE: ocp.RestoreArgs(restore_type=np.ndarray)}
        return reader.restore((path / STATE).resolve(), restore_args=args)[STATE]


def width(size: int, trials: int) -> int:
    """The bytes of a row for a state of `size` bytes: the rest is padding."""
    return size if size * trials <= CHUNK else -(-size // UNIT) * UNIT


def free(folder: Path) -> int:
    """The bytes that the disk of a run folder has left."""
    return shutil.disk_usage(folder).free


def drop(path: Path) -> None:
    """Remove a checkpoint. A kill at any time leaves it whole or hidden."""
    _marker(path).unlink(missing_ok=True)
    _remove(path, path.parent)


def drop_group(folder: Path, group: str) -> None:
    """Remove all checkpoints of a group."""
    home = disk.inside(folder, FOLDER)
    _remove(disk.inside(folder, FOLDER, group), home)


def groups(folder: Path) -> list[str]:
    """The groups that have checkpoints."""
    return sorted(p.name for p in disk.inside(folder, FOLDER).glob("*") if disk.NAME.fullmatch(p.name))


def tidy(folder: Path, *group: str) -> None:
    """Remove what a kill left half written or half removed, in the folder of a group that is ours or above all."""
    for leftover in disk.inside(folder, FOLDER, *group).glob(".*.tmp"):
        shutil.rmtree(leftover, ignore_errors=True)


def failed(path: Path) -> bool:
    """Remember that a group failed after it went on from a checkpoint; true the second time, when that is dropped."""
    if _marker(path).exists():
        drop(path)
        return True
    if path.is_dir():
        disk.write(_marker(path), b"")
    return False


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    """Each thread of Orbax also logs the traceback of what `save` raises."""
    log = logging.getLogger("absl")
    drop = lambda record: False  # noqa: E731
    log.addFilter(drop)
    try:
        yield
    finally:
        log.removeFilter(drop)


def _marker(path: Path) -> Path:
    return path.with_name(path.name + FAILED)


def _remove(path: Path, home: Path) -> None:
    """Rename, then remove: what is half removed is hidden, and `tidy` removes the rest."""
    hidden = home / f".{path.name[:40]}.{secrets.token_hex(6)}.tmp"
    try:
        path.rename(hidden)
    except FileNotFoundError:
        return
    shutil.rmtree(hidden, ignore_errors=True)


def _content(path: Path) -> dict[str, Any]:
    if path.is_symlink() or not path.is_file():
        raise ValueError(f"{path.name} is missing")
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ValueError(f"{path.name} is empty, cut short or not JSON")
    return content


def _sealed(about: Manifest, files: dict[str, str]) -> bytes:
    body = asdict(about) | {"files": files}
    return canonical(body | {"sha256": _sum(canonical(body).encode())}).encode()


def _sums(folder: Path) -> dict[str, str]:
    """The checksum of each file below a folder, but for the manifest. A link is refused: it could lead out of it."""
    sums = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            raise ValueError(f"{name} is a link")
        if path.is_file() and name != MANIFEST:
            with open(path, "rb") as file:
                sums[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return sums


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
