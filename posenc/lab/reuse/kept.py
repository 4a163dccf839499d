"""Trained models that a sweep kept (`--keep`): which there are, and each as a model again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from posenc.lab.models.carry import moved, step_name
from posenc.lab.models.interface import build
from posenc.lab.results.standing import standing
from posenc.lab.run import plan
from posenc.lab.spec import sources
from posenc.lab.store import checkpoints
from posenc.lab.store import folder as store
from posenc.lab.store.schema import PlannedTrial
from posenc.lab.train.training import ResolvedRun

VALUE = jax.tree_util.GetAttrKey("value")
"""The last part of a parameter's path in Flax, which the kept dicts do not have."""


def kept_trial(run: str, scheme: str | None) -> tuple[Path, PlannedTrial]:
    """The folder of a run, and the first trial of a scheme, or of the first scheme, whose parameters were kept.

    Trials of a file that has changed since come last, those that chose a learning rate after those reported, and those
    at another rate than the chosen one between. Raises `ValueError` where there is none.
    """
    folder = store.find(run)
    kept = set(checkpoints.kept(folder))
    lines = [line for line in store.read_plan(folder) if line.id in kept]
    label = lines[0].label if scheme is None and lines else scheme or ""
    if scheme is not None and not any(line.label == scheme for line in lines):
        label = plan.shortest(scheme)
    labelled = [line for line in lines if line.label == label]
    if not labelled:
        has = ", ".join(dict.fromkeys(line.label for line in lines)) or "none; train with --keep"
        of = f" of {label!r}" if label else ""
        raise ValueError(f"{run!r} kept no parameters{of}; it kept those of {has}.")
    others = standing(folder).replaced
    labelled.sort(key=lambda line: (line.tuning, line.id in others))
    return folder, next((line for line in labelled if sources.unchanged(line.run)), labelled[0])


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
