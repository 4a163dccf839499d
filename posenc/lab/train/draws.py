"""Which examples a step of training sees: of which sizes, and whether some step before it saw them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from posenc.lab.spec.run import Run
from posenc.lab.tasks import Task


def turn(run: Run, n: Int[Array, ""]) -> Int[Array, ""]:
    """The first step that sees what step n sees: n itself, or one of the few that a `dataset` fills."""
    return n if run.dataset is None else n % (run.dataset // run.batch)


def sizes(run: Run, task: Task, key: PRNGKeyArray, shape: tuple[int, ...]) -> Int[Array, "*shape"]:
    """Sizes of a run with nothing left open. Where the task lacks a size, the one below it stands for it."""
    if run.uniform == "sizes":
        return task.sizes.below(jax.random.randint(key, shape, run.shortest, run.length + 1))
    legal = [n for n in range(run.shortest, run.length + 1) if task.sizes.has(n)]
    ways = np.array([task.ways(n) for n in legal], np.float64)
    return jax.random.choice(key, jnp.asarray(legal, jnp.int32), shape, p=jnp.asarray(ways / ways.sum(), jnp.float32))
