"""Trained models that a sweep kept (`--keep`), as models again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from posenc.lab.models.carry import moved, step_name
from posenc.lab.models.interface import build
from posenc.lab.store import checkpoints
from posenc.lab.train.training import ResolvedRun

VALUE = jax.tree_util.GetAttrKey("value")
"""The last part of a parameter's path in Flax, which the kept dicts do not have."""


def abstract(resolved: ResolvedRun) -> Any:
    """The model of a run without values."""
    return jax.eval_shape(lambda: build(resolved.scheme, resolved.shape, jax.random.key(0)))


def restored(resolved: ResolvedRun, folder: Path, trial: str) -> Any:
    """The model of a trial with the parameters that were kept."""
    model = abstract(resolved)
    kept = checkpoints.restore(folder, trial)

    def at(path: tuple, _: Any) -> Any:
        node = kept
        for key in path:
            if key != VALUE:
                node = node[str(step_name(key))]
        return jnp.asarray(node)

    return jax.tree_util.tree_map_with_path(at, model)


def restored_under(trained: ResolvedRun, other: ResolvedRun, folder: Path, trial: str) -> Any:
    """Return the model under the scheme of another run, which has the same parameters."""
    model = restored(trained, folder, trial)
    return model if trained.scheme == other.scheme else moved(model, abstract(other))
