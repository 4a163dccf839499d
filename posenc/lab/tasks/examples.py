"""The one program of a task: it makes examples, and nothing else, so that every use of its shape shares it.

Keys and sizes are arguments: test examples, those of the floors and of a card differ by these alone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from posenc.lab.compiling import Programs
from posenc.lab.tasks.task import Batch, Task

ROWS = 256
"""Examples made at once where there are many: as many as a sweep evaluates at each size by default."""


@functools.partial(Programs, static=3)
def examples(task: Task, rows: int, room: int, key: PRNGKeyArray, n: Int[Array, "*rows"], data: Any = None) -> Batch:
    """`rows` examples of size n, padded as size `room` needs; compiled once in a process for each of the first three.

    `data` is a part of the task's data, if it has any. The size is not checked here: see `Task.check_size`.
    """
    return task.sample(key, n, batch=rows, n_max=room, data=data)


def parts(task: Task, rows: int, room: int, key: PRNGKeyArray, n: int) -> tuple[Batch, ...]:
    """`rows` examples of size n in equal parts of at most `ROWS`, so that many need no program of their own."""
    each, data = math.gcd(rows, ROWS), task.load_part("test")
    keys = (jax.random.fold_in(key, i) for i in range(rows // each))
    return tuple(examples(task, each, room, key, np.int32(n), data) for key in keys)


def fewer(
    task: Task, rows: int, most: int, room: int, key: PRNGKeyArray, n: Int[Array, "*rows"], data: Any = None
) -> Batch:
    """`examples` padded as size `room` needs, made by the program of size `most`: padding does not change them."""
    return cut_padding(jax.device_get(examples(task, rows, most, key, n, data)), task, room)


def cut_padding(made: Batch, task: Task, room: int) -> Batch:
    """Examples, as NumPy's arrays, with the padding that size `room` needs."""
    kept = batch_shapes(task, made.tokens.shape[0], room)
    return jax.tree.map(lambda a, of: a[tuple(map(slice, of.shape))], made, kept)


@functools.lru_cache(maxsize=256)
def batch_shapes(task: Task, rows: int, room: int) -> Batch:
    """The shapes of `rows` examples that are padded as size `room` needs; nothing is made."""
    return jax.eval_shape(lambda: task.sample(jax.random.key(0), room, batch=rows, n_max=room))


def bucket_classes(n: int) -> int:
    """One of few numbers of symbols or classes, at least n: 16, 32, or a multiple of 64."""
    return next((m for m in (16, 32) if n <= m), -(-n // 64) * 64)


def round_length(tokens: int) -> int:
    """Return a length that is at least this one, and one above a multiple of 4. Tasks differ by a slot or two, and then
    have one program."""
    return -(-(tokens - 1) // 4) * 4 + 1


def pad_tokens(arrays: Any, to: Callable[[int], int] = round_length) -> Any:
    """Arrays `[..., tokens]`, of NumPy or in a program, with zeros at the end, up to what `to` makes of their length.

    NumPy's take no program for each of their shapes.
    """

    def pad(a: Array) -> Array:
        module = np if isinstance(a, np.ndarray) else jnp
        return module.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, to(a.shape[-1]) - a.shape[-1])])

    return jax.tree.map(pad, arrays)


def texts_of(batch: Batch, n: int) -> Int[np.ndarray, "rows n+1"]:
    """The texts of examples of size n of a source, each with the token that comes after it."""
    tokens, targets = (np.asarray(jax.device_get(leaf))[:, :n] for leaf in (batch.tokens, batch.targets))
    return np.concatenate([tokens, targets[:, -1:]], axis=1)
