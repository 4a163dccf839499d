"""Going on from a checkpoint: by trial, not by lane, so that any devices and any of its trials go on from it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import PyTree

from posenc.lab.store import checkpoints
from posenc.lab.store import folder as store
from posenc.lab.store.schema import PlannedTrial

LIBRARIES = ("jax", "jaxlib", "flax", "optax")
"""Their versions decide numbers."""


class Point(NamedTuple):
    """A group between two segments."""

    stage: int
    step: int
    state: PyTree
    """A leading axis of lanes, of which the trials are the first."""
    losses: list[list[float]]
    """The mean loss of each trial in one stretch of steps after another."""
    seconds: Mapping[str, float]


class Source(NamedTuple):
    """A checkpoint that fits, before its arrays are read."""

    path: Path
    about: checkpoints.Manifest


def program_of(line: PlannedTrial, stride: int, about: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the numbers of further training: only under equal ones does a checkpoint go on.

    `about` describes this process. The number of devices is left out, and the run's revisions and sources are in it.
    """
    run = hashlib.sha256(store.canonical(line.run).encode()).hexdigest()
    return {
        "posenc": about["posenc"],
        **{name: version(name) for name in LIBRARIES},
        "platform": about["platform"],
        "run": run,
        "steps": line.steps,
        "segment": stride,
    }


def newest(
    places: Sequence[Path], ids: Sequence[str], program: Mapping[str, Any], say: Callable[[str], None]
) -> tuple[Source | None, list[Path]]:
    """The checkpoint with the most steps that these trials may go on from, and those that they may not.

    `places` are in the order of their steps; `say` gets a sentence for each that is left out.
    """
    unusable = []
    for path in reversed(places):
        step = checkpoints.step_of(path)
        try:
            about = checkpoints.manifest(path)
        except ValueError as error:
            say(f"the checkpoint at step {step} is left out: {error}")
        else:
            if why := _refused(about, ids, program):
                say(f"the checkpoint at step {step} is not used: {why}")
            else:
                return Source(path, about), unusable
        unusable.append(path)
    return None, unusable


def restored(source: Source, ids: Sequence[str], how: Any, template: PyTree) -> Point:
    """The point that a checkpoint holds, for these trials in lanes of `how`; `template` has the shapes of its state.

    Raises `ValueError` where its arrays are not those of the template.
    """
    about = source.about
    if tuple(names(template)) != about.leaves:
        raise ValueError(f"The checkpoint at step {about.step} holds arrays of another model.")
    lanes = [about.ids.index(id) for id in ids]
    lanes += lanes[:1] * (how.padded(len(ids)) - len(ids))
    segments = zip(*(about.losses[id] for id in ids), strict=True)
    losses = [[math.nan if loss is None else loss for loss in each] for each in segments]
    state = unpacked(checkpoints.rows(source.path)[lanes], template)
    return Point(about.stage, about.step, state, losses, about.seconds)


def spread(point: Point, spacing: int) -> list[list[float]]:
    """The losses of a checkpoint. Those of older ones are means of segments, which stand for all points in them."""
    many = point.step // (spacing * max(len(point.losses), 1))
    return [losses for losses in point.losses for _ in range(many)]


def packed(state: PyTree, trials: int) -> np.ndarray:
    """A copy of the first lanes of a state, each a row of bytes."""
    leaves = jax.tree.leaves(state)
    rows = np.zeros((trials, row_size(state, trials)), np.uint8)
    at = 0
    for leaf in leaves:
        whole = np.ascontiguousarray(jax.device_get(leaf)[:trials]).reshape(trials, -1).view(np.uint8)
        rows[:, at : at + whole.shape[1]] = whole
        at += whole.shape[1]
    return rows


def unpacked(rows: np.ndarray, template: PyTree) -> PyTree:
    """The state whose lanes are these rows; `template` has its types and shapes."""
    leaves, tree = jax.tree.flatten(template)
    made, at = [], 0
    for leaf in leaves:
        size = _size(leaf)
        whole = np.ascontiguousarray(rows[:, at : at + size]).view(leaf.dtype)
        made.append(whole.reshape(len(rows), *leaf.shape[1:]))
        at += size
    return jax.tree.unflatten(tree, made)


def row_size(state: PyTree, trials: int) -> int:
    """The bytes of a row, one of so many."""
    return checkpoints.width(sum(map(_size, jax.tree.leaves(state))), trials)


def names(state: PyTree) -> list[str]:
    """The path, type and shape of each array of a state, without its axis of lanes."""
    every = jax.tree_util.tree_leaves_with_path(state)
    return [f"{jax.tree_util.keystr(path)} {leaf.dtype}{list(leaf.shape[1:])}" for path, leaf in every]


def _size(leaf: Any) -> int:
    return math.prod(leaf.shape[1:]) * leaf.dtype.itemsize


def _refused(about: checkpoints.Manifest, ids: Sequence[str], program: Mapping[str, Any]) -> str:
    """Why these trials may not go on from a checkpoint, or nothing."""
    for name in program.keys() | about.program.keys():
        before, now = about.program.get(name), program.get(name)
        if before != now:
            return f"it is of another run ({name} was {str(before)[:16]} and is {str(now)[:16]})"
    if missing := [id for id in ids if id not in about.ids]:
        return f"it lacks {len(missing)} of the {len(ids)} trials"
    return ""
