"""`doctor`: versions, devices and folders of this machine, for a bug report."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from posenc.lab.cli.options import Flag
from posenc.lab.cli.output import clean, say_json, say_rows
from posenc.lab.store import disk

PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "scipy", "tyro", "rich", "matplotlib", "ray")
_VARIABLES = "JAX_PLATFORMS XLA_FLAGS CUDA_VISIBLE_DEVICES POSENC_RUNS POSENC_SAVE_EVERY SLURM_JOB_ID NO_COLOR".split()


@dataclass(frozen=True)
class Doctor:
    """Versions, devices and folders, and whether runs can be written here."""

    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        from posenc.lab.train import device

        start()
        facts: dict[str, Any] = dict(device.describe())
        facts |= {name: _version(name) for name in PACKAGES}
        facts |= {"runs": f"{disk.root()}, {_writable()}", "compilation cache": f"{device.cache()}, {device.cached()}"}
        facts |= {name: os.environ[name] for name in _VARIABLES if name in os.environ}
        if self.json:
            say_json(facts)
        else:
            say_rows(("what", "here"), list(facts.items()))
        return 0


def start() -> None:
    """Prepare devices and start jax. Raises `ValueError` if the requested device is missing."""
    from posenc.lab.train.device import prepare

    if warning := prepare():
        print(clean(warning), file=sys.stderr)
    import jax

    try:
        jax.devices()
    except (RuntimeError, AssertionError):
        platforms = os.environ.get("JAX_PLATFORMS", "")
        raise ValueError(
            f"JAX finds no device for JAX_PLATFORMS={platforms}; unset it, or install jax for that device."
        ) from None


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        why = {"matplotlib": "figures need it: pip install 'posenc[plot]'", "ray": "--engine ray needs it"}
        return "; ".join(["not installed", *filter(None, [why.get(name)])])


def _writable() -> str:
    folder = disk.root()
    place = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    return "can be written" if os.access(place, os.W_OK) else "cannot be written; set POSENC_RUNS to another folder"
