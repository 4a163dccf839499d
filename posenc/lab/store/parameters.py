"""Trained parameters, kept by Orbax under a manifest of checksums: alone, Orbax restored a flipped byte in silence."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from posenc.lab.store import disk

MANIFEST = "manifest.json"


def save(folder: Path, trial: str, params: Any) -> Path:
    """Keep nested dicts of arrays for a trial; whole or absent."""
    import orbax.checkpoint as ocp

    target = disk.inside(folder, "params", trial)
    fresh = target.with_name(f".{trial[:40]}.tmp")
    try:
        with disk.guarded(target):
            shutil.rmtree(target, ignore_errors=True)
            with ocp.PyTreeCheckpointer() as writer:
                writer.save(fresh.resolve(), _texts(params), force=True)
            (fresh / MANIFEST).write_text(json.dumps(_sums(fresh), sort_keys=True))
            fresh.rename(target)
            disk.sync(target.parent)
    except ValueError as error:  # how Orbax tells of a full disk
        if "No space left" not in str(error):
            raise
        raise disk.DiskError(
            errno.ENOSPC, f"{str(target)!r} cannot be written: no space is left on the device."
        ) from error
    finally:
        for left in target.parent.glob(f"{fresh.name}*"):  # Orbax writes beside it first
            shutil.rmtree(left, ignore_errors=True)
    return target


def restore(folder: Path, trial: str) -> Any:
    """The parameters of a trial, bit for bit. Raises `ValueError` where they were not kept or are damaged."""
    import orbax.checkpoint as ocp

    target = disk.inside(folder, "params", trial)
    if not (target / MANIFEST).is_file():
        raise ValueError(f"No parameters of trial {trial[:12]} were kept here; train with --keep.")
    try:
        expected, found = dict(json.loads(disk.content(target / MANIFEST))), _sums(target)
    except (ValueError, TypeError, RecursionError):
        expected, found = {MANIFEST: ""}, {}
    wrong = sorted(n for n in expected.keys() | found.keys() if expected.get(n) != found.get(n))
    if wrong:
        raise ValueError(f"The parameters of trial {trial[:12]} are damaged ({wrong[0]}); train it again with --keep.")
    with ocp.PyTreeCheckpointer() as reader:
        return reader.restore(target.resolve())


def kept(folder: Path) -> list[str]:
    """The trials whose parameters are here."""
    return sorted(p.name for p in disk.inside(folder, "params").glob("*") if (p / MANIFEST).is_file())


def _texts(params: Any) -> Any:
    """The same with texts for keys, as Orbax wants them, and NumPy arrays."""
    if isinstance(params, dict):
        return {str(k): _texts(v) for k, v in params.items()}
    if isinstance(params, tuple | list):
        return {str(k): _texts(v) for k, v in enumerate(params)}
    return np.asarray(params)


def _sums(folder: Path) -> dict[str, str]:
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != MANIFEST)
    return {p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}
