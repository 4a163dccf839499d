"""The one program of a task: it makes examples, and nothing else, so that every use of its shape shares it.

Keys and sizes are arguments: test examples, those of the floors and of a card differ by these alone.
"""

from __future__ import annotations

import functools

import jax
from jaxtyping import Array, Int, PRNGKeyArray

from posenc.lab.tasks.task import Batch, Task


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def examples(task: Task, rows: int, room: int, key: PRNGKeyArray, n: Int[Array, "*rows"]) -> Batch:
    """`rows` examples of size n, padded as size `room` needs; compiled once in a process for each of the first three.

    The size is not checked here: see `Task.check_size`.
    """
    return task.sample(key, n, batch=rows, n_max=room)
