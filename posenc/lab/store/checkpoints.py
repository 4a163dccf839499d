"""Arrays on disk, whole or absent: those of groups in training, and the parameters of trained trials.

    ckpt/<group>/<step>.<token>/{manifest.json, state/}    a group in training
    params/<trial>/{manifest.json, state/}                 what a trained one leaves (`--keep`)

`write` is the one writer. Orbax writes the arrays into `state/`. The manifest has the SHA-256 of every file and of
itself, since Orbax alone restores a flipped byte in silence. Reading executes nothing and follows no path that leaves
the folder. The token is that of a worker's claim. Two workers that both believe to own a group never write to one
location.

A trial in training is one row of bytes, its arrays one after another. As many small arrays, Orbax takes longer. On a
disk that fills meanwhile it prints a traceback for each.
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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from posenc.lab.store import disk
from posenc.lab.store.records import canonical, checksum

FOLDER, PARAMETERS, MANIFEST, STATE, FAILED = "ckpt", "params", "manifest.json", "state", ".failed"
NAME = re.compile(r"(\d{1,10})\.[0-9a-f]{16}")
EVERY = 300.0
"""Seconds between two checkpoints of a group, unless requested otherwise."""
FULL = (errno.ENOSPC, errno.EDQUOT)
CHUNK, UNIT, BESIDE = 2**26, 2**20, 2**16
"""Three counts of bytes. Orbax writes `CHUNK` at once. Larger rows are a multiple of `UNIT`, since it looks for a
divisor. `BESIDE` is for its own files, with room to round them up."""


@dataclass(frozen=True)
class Manifest:
    """Content of a checkpoint, apart from its bytes."""

    step: int
    """Steps that are done."""
    stage: int
    """The stage of training that the state belongs to, from 0."""
    program: Mapping[str, Any]
    """The facts that decide the numbers of further training; only an equal program may go on."""
    ids: tuple[str, ...]
    """The trials, in the order of the rows."""
    leaves: tuple[str, ...]
    """The name, type and shape of each array of a trial, in the order of its bytes."""
    losses: Mapping[str, list[float | None]]
    """Trial to its mean loss in each segment; null where it was not finite."""
    seconds: Mapping[str, float]
    """Phase to the seconds that it took so far, over all restarts."""


def write(target: Path, tree: Any, body: Mapping[str, Any]) -> Path:
    """Put nested dicts of arrays in place under a manifest that says `body`, whole or not at all. An older content is
    replaced. Raises `DiskError` if the disk refuses."""
    import jax
    import orbax.checkpoint as ocp

    fresh = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}.tmp")
    try:
        with disk.guarded(target):
            fresh.mkdir(parents=True)
            with _errors_of_orbax(), ocp.PyTreeCheckpointer() as writer:
                pieces = jax.tree.map(lambda _: ocp.SaveArgs(chunk_byte_size=CHUNK), tree)
                writer.save((fresh / STATE).resolve(), tree, save_args=pieces)
            (fresh / STATE / "commit_success.txt").unlink(missing_ok=True)  # it holds a path of this machine
            disk.write(fresh / MANIFEST, _sealed(body, _sums(fresh)))
            _remove(target, target.parent)
            fresh.rename(target)
            disk.sync(target.parent)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def verify(path: Path) -> dict[str, Any]:
    """Return the manifest of a folder, if all files are as it says. Raises `ValueError` with the reason."""
    place = path / MANIFEST
    if path.is_symlink():
        raise ValueError("it is a link")
    if place.is_symlink() or not place.is_file():
        raise ValueError(f"{MANIFEST} is missing")
    try:
        body = json.loads(place.read_bytes())
        sum = body.pop("sha256")
    except (ValueError, RecursionError, AttributeError, TypeError, KeyError):
        raise ValueError(f"{MANIFEST} is empty, cut short or of another version") from None
    if sum != checksum(canonical(body)) or type(body.get("files")) is not dict:
        raise ValueError(f"{MANIFEST} does not match its checksum")
    expected, present = body["files"], _sums(path)
    if wrong := sorted(n for n in expected.keys() | present.keys() if expected.get(n) != present.get(n)):
        raise ValueError(f"{wrong[0]} {'is missing' if wrong[0] not in present else 'does not match its checksum'}")
    return body


def read_tree(path: Path) -> Any:
    """Return the arrays that Orbax wrote into a folder. The caller has checked their files."""
    import orbax.checkpoint as ocp

    with ocp.PyTreeCheckpointer() as reader:
        return reader.restore(path.resolve())


def save(folder: Path, group: str, token: str, manifest: Manifest, rows: np.ndarray) -> Path:
    """Keep a checkpoint of a group; returns its place. One that is there already stays."""
    target = disk.inside(folder, FOLDER, group, f"{manifest.step}.{token}")
    return target if target.is_dir() else write(target, {STATE: rows}, asdict(manifest))


def paths(folder: Path, group: str) -> list[Path]:
    """The checkpoints of a group, those with fewer steps first, whether readable or not."""
    places = disk.inside(folder, FOLDER, group).glob("*")
    return sorted((p for p in places if NAME.fullmatch(p.name)), key=lambda p: (step_of(p), p.name))


def step_of(path: Path) -> int:
    """The steps that a checkpoint's name says."""
    return int(path.name.partition(".")[0])


def manifest(path: Path) -> Manifest:
    """Return the manifest of a checkpoint. Raises `ValueError` with the reason if it is damaged in any file."""
    try:
        parsed = msgspec.convert(verify(path), Manifest)
    except msgspec.ValidationError as error:
        raise ValueError(f"{MANIFEST} cannot be: {error}") from None
    if parsed.step != step_of(path):
        raise ValueError(f"{MANIFEST} is of step {parsed.step}")
    return parsed


def rows(path: Path) -> np.ndarray:
    """The bytes of each trial, of a checkpoint whose manifest was read."""
    return read_tree(path / STATE)[STATE]


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


def note_failure(path: Path) -> bool:
    """Remember that a group failed after it went on from a checkpoint; true the second time, when that is dropped."""
    if _marker(path).exists():
        drop(path)
        return True
    if path.is_dir():
        disk.write(_marker(path), b"")
    return False


def save_parameters(folder: Path, trial: str, params: Any) -> Path:
    """Keep nested dicts of arrays for a trial; whole or absent. Raises `DiskError` where the disk refuses."""
    return write(disk.inside(folder, PARAMETERS, trial), _texts(params), {})


def restore(folder: Path, trial: str) -> Any:
    """The parameters of a trial, bit for bit. Raises `ValueError` where they were not kept or are damaged."""
    target = disk.inside(folder, PARAMETERS, trial)
    if not (target / MANIFEST).is_file():
        raise ValueError(f"No parameters of trial {trial[:12]} were kept here; train with --keep.")
    try:
        verify(target)
        return read_tree(target / STATE)
    except ValueError as error:
        raise ValueError(
            f"The parameters of trial {trial[:12]} are damaged ({error}); train it again with --keep."
        ) from None


def kept(folder: Path) -> list[str]:
    """The trials whose parameters are here."""
    return sorted(p.name for p in disk.inside(folder, PARAMETERS).glob("*") if (p / MANIFEST).is_file())


def _texts(params: Any) -> Any:
    """Return the tree with texts for keys, as Orbax wants them, and NumPy arrays."""
    if isinstance(params, dict):
        return {str(k): _texts(v) for k, v in params.items()}
    if isinstance(params, tuple | list):
        return {str(k): _texts(v) for k, v in enumerate(params)}
    return np.asarray(params)


@contextlib.contextmanager
def _errors_of_orbax() -> Iterator[None]:
    """A full disk, which Orbax reports by `ValueError`, is an `OSError`. The traceback that each of its threads logs is
    left out."""
    log = logging.getLogger("absl")
    drop = lambda record: False  # noqa: E731
    log.addFilter(drop)
    try:
        yield
    except ValueError as error:
        if "No space left" not in str(error):
            raise
        raise OSError(errno.ENOSPC, "") from error
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


def _sealed(body: Mapping[str, Any], files: Mapping[str, str]) -> bytes:
    content = {**body, "files": files}
    return canonical(content | {"sha256": checksum(canonical(content))}).encode()


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
