"""What no longer serves in a run folder: checkpoints of recorded groups, claims of the dead, files half written."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from posenc.lab.store import checkpoints, disk
from posenc.lab.store import folder as store


class Leftover(NamedTuple):
    """A file or folder to remove."""

    path: Path
    why: str
    size: int
    """Bytes."""


def leftovers(folder: Path) -> list[Leftover]:
    """What no longer serves, in the order of paths. What a living worker may need is not in it."""
    claims = store.held(folder)
    alive = {claim.group for claim in claims if not claim.stale}
    found = {disk.inside(folder, "claims", c.group): "a claim whose worker is gone" for c in claims if c.stale}
    for group in store.finished(folder).intersection(checkpoints.groups(folder)) - alive:
        found[disk.inside(folder, checkpoints.FOLDER, group)] = "checkpoints of a group that is recorded"
    homes = [disk.inside(folder, name) for name in (*disk.PARTS, checkpoints.FOLDER)]
    homes += [home for home in homes[-1].glob("*") if home.is_dir() and home.name not in alive]
    for home in (folder, *homes):
        found |= dict.fromkeys(disk.abandoned(home), "half written, and left for more than an hour")
    return [Leftover(path, why, _size(path)) for path, why in sorted(found.items())]


def remove(found: list[Leftover]) -> None:
    """Remove them; one that has gone meanwhile is no error."""
    for path, *_ in found:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _size(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.lstat().st_size for file in files if file.is_file())
