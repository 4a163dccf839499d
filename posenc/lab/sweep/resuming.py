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
    """For each segment, the mean loss of each trial."""
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
    expected, tree = names(template), jax.tree.structure(template)
    if tuple(expected) != about.leaves:
        raise ValueError(f"The checkpoint at step {about.step} holds arrays of another model.")
    rows = [about.ids.index(id) for id in ids]
    rows += rows[:1] * (how.padded(len(ids)) - len(ids))
    shapes = jax.tree.leaves(template)
    stored = checkpoints.arrays(source.path, [key(n) for n, leaf in enumerate(shapes) if leaf.size])
    whole = [
        stored[key(n)] if leaf.size else np.zeros((len(about.ids), *leaf.shape[1:]), leaf.dtype)
        for n, leaf in enumerate(shapes)
    ]
    state = jax.tree.unflatten(tree, [a[rows] for a in whole])
    segments = zip(*(about.losses[id] for id in ids), strict=True)
    losses = [[math.nan if loss is None else loss for loss in each] for each in segments]
    return Point(about.stage, about.step, state, losses, about.seconds)


def key(n: int) -> str:
    """The name under which Orbax keeps the n-th array of a state."""
    return f"{n:05d}"


def names(state: PyTree) -> list[str]:
    """The path, type and shape of each array of a state, without its axis of lanes."""
    every = jax.tree_util.tree_leaves_with_path(state)
    return [f"{jax.tree_util.keystr(path)} {leaf.dtype}{list(leaf.shape[1:])}" for path, leaf in every]


def _refused(about: checkpoints.Manifest, ids: Sequence[str], program: Mapping[str, Any]) -> str:
    """Why these trials may not go on from a checkpoint, or nothing."""
    for name in program.keys() | about.program.keys():
        before, now = about.program.get(name), program.get(name)
        if before != now:
            return f"it is of another run ({name} was {str(before)[:16]} and is {str(now)[:16]})"
    if missing := [id for id in ids if id not in about.ids]:
        return f"it lacks {len(missing)} of the {len(ids)} trials"
    return ""
