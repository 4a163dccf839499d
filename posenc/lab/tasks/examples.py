"""The one program of a task: it makes examples, and nothing else, so that every use of its shape shares it.

Keys and sizes are arguments: test examples, those of the floors and of a card differ by these alone.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from posenc.lab.tasks.task import Batch, Task

ROWS = 256
"""Examples made at once where there are many: as many as a sweep evaluates at each size by default."""


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def examples(task: Task, rows: int, room: int, key: PRNGKeyArray, n: Int[Array, "*rows"]) -> Batch:
    """`rows` examples of size n, padded as size `room` needs; compiled once in a process for each of the first three.

    The size is not checked here: see `Task.check_size`.
    """
    return task.sample(key, n, batch=rows, n_max=room)


def parts(task: Task, rows: int, room: int, key: PRNGKeyArray, n: int) -> tuple[Batch, ...]:
    """`rows` examples of size n in equal parts of at most `ROWS`, so that many need no program of their own."""
    each = math.gcd(rows, ROWS)
    return tuple(examples(task, each, room, jax.random.fold_in(key, i), jnp.int32(n)) for i in range(rows // each))


def fewer(task: Task, rows: int, most: int, room: int, key: PRNGKeyArray, n: Int[Array, "*rows"]) -> Batch:
    """`examples` padded as size `room` needs, made by the program of size `most`: padding does not change them."""
    made = examples(task, rows, most, key, n)
    if room == most:
        return made
    shapes = examples.eval_shape(task, rows, room, key, n)
    return jax.tree.map(lambda a, kept: a[tuple(map(slice, kept.shape))], made, shapes)


def texts_of(batch: Batch, n: int) -> Int[np.ndarray, "rows n+1"]:
    """The texts of examples of size n of a source, each with the token that comes after it."""
    tokens, targets = (np.asarray(jax.device_get(leaf))[:, :n] for leaf in (batch.tokens, batch.targets))
    return np.concatenate([tokens, targets[:, -1:]], axis=1)
