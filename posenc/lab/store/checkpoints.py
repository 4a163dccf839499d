"""Arrays on disk, whole or absent: those of groups in training, and the parameters of trained trials.

    ckpt/<group>/<step>.<token>    a group in training
    params/<trial>                 what a trained one leaves (`--keep`)

Each is one file: a line of JSON, then the bytes of its arrays. The line begins with the SHA-256 of all that follows.
Reading executes nothing. The token is that of a worker's claim, so that two workers which both believe to own a group
never write to one file.

Version 0.2.0 wrote folders by Orbax instead. Parameters in one are still read.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from posenc.lab.store import disk
from posenc.lab.store.records import canonical, checksum

FOLDER, PARAMETERS = "ckpt", "params"
NAME = re.compile(r"(\d{1,10})\.[0-9a-f]{16}")
EVERY = 300.0
"""Seconds between two checkpoints of a group, unless requested otherwise."""
FULL = (errno.ENOSPC, errno.EDQUOT)
BESIDE = 2**16
"""Bytes that are more than enough for the manifest of a checkpoint, apart from its losses."""
_START = re.compile(rb'\{"sha256":"([0-9a-f]{64})",')


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


def write(target: Path, body: Mapping[str, Any], arrays: list[np.ndarray]) -> Path:
    """Put a file in place that says `body` and holds the bytes of arrays. Raises `DiskError` if the disk refuses."""
    line = canonical(body).encode()[1:] + b"\n"
    parts = [line, *(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data for array in arrays)]
    sum = hashlib.sha256()
    for part in parts:
        sum.update(part)
    with disk.guarded(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    return disk.write(target, b'{"sha256":"%s",' % sum.hexdigest().encode(), *parts)


def read(path: Path) -> tuple[dict[str, Any], memoryview]:
    """Return what a file says, and the bytes of its arrays. Raises `ValueError` with the reason if it is damaged."""
    if path.is_symlink():
        raise ValueError("it is a link")
    if path.is_dir():
        raise ValueError("it is a folder, as version 0.2.0 wrote them")
    with disk.opened(path, largest=math.inf) as file:
        content = file.read()
    if (start := _START.match(content)) is None:
        raise ValueError("it is empty, cut short or of another version")
    if hashlib.sha256(memoryview(content)[start.end() :]).hexdigest().encode() != start[1]:
        raise ValueError("it does not match its checksum")
    end = content.index(b"\n")
    return json.loads(b"{" + content[start.end() : end]), memoryview(content)[end + 1 :]


def save(folder: Path, group: str, token: str, manifest: Manifest, rows: np.ndarray) -> Path:
    """Keep a checkpoint of a group; returns its place. One that is there already stays."""
    target = disk.inside(folder, FOLDER, group, f"{manifest.step}.{token}")
    return target if target.exists() else write(target, asdict(manifest), [rows])


def paths(folder: Path, group: str) -> list[Path]:
    """The checkpoints of a group, those with fewer steps first, whether readable or not."""
    places = disk.inside(folder, FOLDER, group).glob("*")
    return sorted((p for p in places if NAME.fullmatch(p.name)), key=lambda p: (step_of(p), p.name))


def step_of(path: Path) -> int:
    """The steps that a checkpoint's name says."""
    return int(path.name.partition(".")[0])


def manifest(path: Path) -> Manifest:
    """Return the manifest of a checkpoint. Raises `ValueError` with the reason if it is damaged anywhere."""
    try:
        about = msgspec.convert(read(path)[0], Manifest)
    except msgspec.ValidationError as error:
        raise ValueError(f"its manifest cannot be: {error}") from None
    if about.step != step_of(path):
        raise ValueError(f"its manifest is of step {about.step}")
    return about


def rows(path: Path) -> np.ndarray:
    """The bytes of each trial, of a checkpoint whose manifest was read."""
    body, content = read(path)
    return np.frombuffer(content, np.uint8).reshape(len(body["ids"]), -1)


def free(folder: Path) -> int:
    """The bytes that the disk of a run folder has left."""
    return shutil.disk_usage(folder).free


def drop(path: Path) -> None:
    """Remove a checkpoint: a file, or a folder of version 0.2.0."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def drop_group(folder: Path, group: str) -> None:
    """Remove all checkpoints of a group."""
    shutil.rmtree(disk.inside(folder, FOLDER, group), ignore_errors=True)


def groups(folder: Path) -> list[str]:
    """The groups that have checkpoints."""
    return sorted(p.name for p in disk.inside(folder, FOLDER).glob("*") if disk.NAME.fullmatch(p.name))


def tidy(folder: Path, group: str) -> None:
    """Remove what a kill left half written of a group that is ours."""
    for leftover in disk.inside(folder, FOLDER, group).glob(".*.tmp"):
        drop(leftover)


def save_parameters(folder: Path, trial: str, params: Any) -> Path:
    """Keep nested dicts of arrays for a trial; whole or absent. Raises `DiskError` where the disk refuses."""
    leaves = list(_leaves(params))
    about = [{"path": path, "type": str(array.dtype), "shape": array.shape} for path, array in leaves]
    return write(disk.inside(folder, PARAMETERS, trial), {"arrays": about}, [array for _, array in leaves])


def restore(folder: Path, trial: str) -> Any:
    """The parameters of a trial, bit for bit. Raises `ValueError` where they were not kept or are damaged."""
    target = disk.inside(folder, PARAMETERS, trial)
    if not _holds_parameters(target):
        raise ValueError(f"No parameters of trial {trial[:12]} were kept here; train with --keep.")
    try:
        return _of_0_2(target) if target.is_dir() else _tree(*read(target))
    except (ValueError, TypeError, KeyError) as error:  # of what is no parameters
        raise ValueError(
            f"The parameters of trial {trial[:12]} are damaged ({error}); train it again with --keep."
        ) from None


def kept(folder: Path) -> list[str]:
    """The trials whose parameters are here."""
    return [path.name for path in disk.part(folder, PARAMETERS) if _holds_parameters(path)]


def _leaves(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    """The arrays of nested dicts and lists, each with its keys as texts."""
    if not isinstance(tree, dict | list | tuple):
        yield path, np.asarray(tree)
        return
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield from _leaves(value, (*path, str(key)))


def _tree(body: Mapping[str, Any], content: memoryview) -> Any:
    """The nested dicts of arrays that a file holds."""
    import jax.numpy as jnp  # it knows the types that NumPy has not

    tree, at = {}, 0
    for about in body["arrays"]:
        kind, shape = jnp.dtype(about["type"]), about["shape"]
        array, node = np.ndarray(shape, kind, content, at).copy(), tree
        *above, name = about["path"]
        for key in above:
            node = node.setdefault(key, {})
        node[name] = array
        at += math.prod(shape) * kind.itemsize
    return tree


def _holds_parameters(path: Path) -> bool:
    return path.is_file() or (path / "manifest.json").is_file()


def _of_0_2(folder: Path) -> Any:
    """The parameters that version 0.2.0 wrote. Orbax restores a flipped byte in silence, so that the manifest has the
    checksum of every file."""
    import orbax.checkpoint as ocp

    try:
        body = json.loads(disk.content(folder / "manifest.json"))
        sums = {"manifest.json": (body.pop("sha256"), checksum(canonical(body)))}
        for name, expected in body["files"].items():
            sums[name] = expected, hashlib.sha256(disk.content(folder / name)).hexdigest()
    except (OSError, ValueError, RecursionError, AttributeError, TypeError, KeyError):
        raise ValueError("a file is missing, empty or cut short") from None
    if wrong := [name for name, (expected, found) in sums.items() if expected != found]:
        raise ValueError(f"{wrong[0]} does not match its checksum")
    with ocp.PyTreeCheckpointer() as reader:
        return reader.restore((folder / "state").resolve())
