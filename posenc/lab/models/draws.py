"""Initial weights cut from one normal draw: a draw for each matrix would take as long to compile as a training step.

The order of the cuts is part of the format: changing it changes every trial.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

Build = Callable[[Any], Any]


class WeightDraw(NamedTuple):
    """Source of initial weights: a key, and the task's own numbers of symbols and classes if a model has more of them.
    The further weights are zero, and the others are those of the smaller model."""

    key: PRNGKeyArray
    symbols: Any = None
    classes: Any = None


class Cut:
    """The part of `nnx.Rngs` that modules here use: `rngs.params.normal(shape)`, and `rngs.params()` for a key."""

    def __init__(self, flat: Float[Array, " n"], draw: WeightDraw):
        self._flat, self._at, self._keys, self.draw = flat, 0, 0, draw

    @property
    def params(self) -> Cut:
        return self

    def normal(self, shape: tuple[int, ...]) -> Array:
        """The next numbers of the draw."""
        start, self._at = self._at, self._at + math.prod(shape)
        return _slice(self._flat, start, math.prod(shape)).reshape(shape)

    def padded_normal(self, shape: tuple[int, int], rows: Any, columns: Any) -> Array:
        """Return the next numbers of the draw for these rows and columns, the others zero; None for all."""
        rows, columns = _all(shape, rows, columns)
        start, self._at = self._at, self._at + rows * columns
        i, j = (jax.lax.broadcasted_iota(jnp.int32, shape, axis) for axis in (0, 1))
        at = jnp.minimum(start + i * columns + j, self._flat.size - 1)
        return jnp.where((i < rows) & (j < columns), self._flat[at], 0)

    def __call__(self) -> PRNGKeyArray:
        self._keys += 1
        return jax.random.fold_in(self.draw.key, self._keys)


class _Count(Cut):
    """Counts how many numbers a builder draws, and for how many it has room."""

    def __init__(self, draw: WeightDraw):
        super().__init__(jnp.zeros(0), WeightDraw(jax.random.key(0), draw.symbols, draw.classes))
        self.shapes: list[tuple[Any, ...]] = []
        self.room = 0

    def normal(self, shape):
        self.shapes.append(shape)
        self.room += math.prod(shape)
        return jnp.zeros(shape)

    def padded_normal(self, shape, rows, columns):
        self.normal(shape)
        self.shapes[-1] = _all(shape, rows, columns)
        return jnp.zeros(shape)


def _all(shape: tuple[int, int], rows: Any, columns: Any) -> tuple[Any, Any]:
    return shape[0] if rows is None else rows, shape[1] if columns is None else columns


def _slice(flat: Float[Array, " n"], start: Any, size: int) -> Float[Array, " size"]:
    """A part of the draw; where it starts may depend on the task."""
    if isinstance(start, int):
        return flat[start : start + size]
    return jax.lax.dynamic_slice_in_dim(flat, start, size)


def named_key(key: PRNGKeyArray, *names: str | int | Array) -> PRNGKeyArray:
    """A key for one purpose, named by texts and numbers such as "layer", 3."""
    for name in names:  # crc32, since `hash` of a text differs from process to process
        key = jax.random.fold_in(key, np.uint32(zlib.crc32(name.encode())) if isinstance(name, str) else name)
    return key


def cut(builds: list[tuple[Build, int | None]], key: PRNGKeyArray | WeightDraw) -> list[Any]:
    """The results of all builders from one shared draw; with a number, that many of one, stacked on a leading axis."""
    draw = key if isinstance(key, WeightDraw) else WeightDraw(key)
    counts = [_count_numbers(build, draw) for build, _ in builds]
    sizes = [room * (times or 1) for (_, room), (_, times) in zip(counts, builds, strict=True)]
    # normal numbers do not depend on how many follow them
    flat = jax.random.normal(draw.key, (sum(sizes),))
    made, start = [], 0
    for n, ((build, times), (count, _), size) in enumerate(zip(builds, counts, sizes, strict=True)):
        numbers, own = _slice(flat, start, size), draw._replace(key=jax.random.fold_in(draw.key, n))
        start = start + count * (times or 1)
        if times is None:
            made.append(build(Cut(numbers, own)))
        else:
            stacked = jax.vmap(lambda f, k, build=build, own=own: build(Cut(f, own._replace(key=k))))
            made.append(stacked(numbers.reshape(times, -1), jax.random.split(own.key, times)))
    return made


def _count_numbers(build: Build, draw: WeightDraw) -> tuple[Any, int]:
    """How many numbers a builder draws, and for how many it has room."""
    count = _Count(draw)
    jax.eval_shape(lambda: build(count))
    return sum(math.prod(shape) for shape in count.shapes), count.room
