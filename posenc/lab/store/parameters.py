"""Trained parameters that a sweep keeps (`--keep`): nested dicts of arrays, a folder for each trial."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from posenc.lab.store import checkpoints, disk
from posenc.lab.store.checkpoints import MANIFEST, STATE

FOLDER = "params"


def save(folder: Path, trial: str, params: Any) -> Path:
    """Keep nested dicts of arrays for a trial; whole or absent. Raises `DiskError` where the disk refuses."""
    return checkpoints.write(disk.inside(folder, FOLDER, trial), _texts(params), {})


def restore(folder: Path, trial: str) -> Any:
    """The parameters of a trial, bit for bit. Raises `ValueError` where they were not kept or are damaged."""
    target = disk.inside(folder, FOLDER, trial)
    if not (target / MANIFEST).is_file():
        raise ValueError(f"No parameters of trial {trial[:12]} were kept here; train with --keep.")
    try:
        return checkpoints.read_tree(_checked(target))
    except ValueError as error:
        raise ValueError(
            f"The parameters of trial {trial[:12]} are damaged ({error}); train it again with --keep."
        ) from None


def kept(folder: Path) -> list[str]:
    """The trials whose parameters are here."""
    return sorted(p.name for p in disk.inside(folder, FOLDER).glob("*") if (p / MANIFEST).is_file())


def _checked(target: Path) -> Path:
    """Where the arrays of a folder are, all of whose files are as its manifest says. That of an older version is a
    table of checksums alone, and the arrays stand beside it."""
    content = checkpoints.read_manifest(target)
    if "files" not in content:
        checkpoints.check_files(target, content)
        return target
    checkpoints.verify(target)
    return target / STATE


def _texts(params: Any) -> Any:
    """The same with texts for keys, as Orbax wants them, and NumPy arrays."""
    if isinstance(params, dict):
        return {str(k): _texts(v) for k, v in params.items()}
    if isinstance(params, tuple | list):
        return {str(k): _texts(v) for k, v in enumerate(params)}
    return np.asarray(params)
