"""Whether a node computes as the driver's machine would: the same sources of posenc and the same libraries. No jax."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import posenc

LIBRARIES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy")
SOURCES, SHOWN = "posenc's sources", 10


def facts() -> dict[str, str]:
    """What must be equal on all nodes."""
    found = {name: version(name) for name in LIBRARIES}
    return {"posenc": posenc.__version__, SOURCES: sources(Path(posenc.__file__).parent)[:SHOWN], **found}


def sources(folder: Path) -> str:
    """The digest of all Python files below a folder, without the experiments that only a wheel holds there."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder)
        if name.parts[0] != "experiments":
            digest.update(f"{name.as_posix()}\n".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def difference(here: Mapping[str, str], there: Mapping[str, str]) -> str:
    """What the driver `here` has and a node `there` has not, in words; empty if nothing differs."""
    for name in here.keys() | there.keys():
        if here.get(name) != there.get(name):
            return f"has {name} {there.get(name, 'missing')}, and the driver has {here.get(name, 'none')}"
    return ""
