"""Initial weights cut from one normal draw: a draw for each matrix would take as long to compile as a training step.

The order of the cuts is part of the format: changing it changes every trial.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

Build = Callable[[Any], Any]


class Cut:
    """The part of `nnx.Rngs` that modules here use: `rngs.params.normal(shape)`, and `rngs.params()` for a key."""

    def __init__(self, flat: Float[Array, " n"], key: PRNGKeyArray):
        self._flat, self._key, self._at, self._keys = flat, key, 0, 0

    @property
    def params(self) -> Cut:
        return self

    def normal(self, shape: tuple[int, ...]) -> Array:
        """The next numbers of the draw."""
        start, self._at = self._at, self._at + math.prod(shape)
        return self._flat[start : self._at].reshape(shape)

    def __call__(self) -> PRNGKeyArray:
        self._keys += 1
        return jax.random.fold_in(self._key, self._keys)


class _Count(Cut):
    """Counts how many numbers a builder draws."""

    def __init__(self):
        super().__init__(jnp.zeros(0), jax.random.key(0))
        self.drawn = 0

    def normal(self, shape):
        self.drawn += math.prod(shape)
        return jnp.zeros(shape)


def named_key(key: PRNGKeyArray, *names: str | int | Array) -> PRNGKeyArray:
    """A key for one purpose, named by texts and numbers such as "layer", 3."""
    for name in names:  # crc32, since `hash` of a text differs from process to process
        key = jax.random.fold_in(key, np.uint32(zlib.crc32(name.encode())) if isinstance(name, str) else name)
    return key


def cut(builds: list[tuple[Build, int | None]], key: PRNGKeyArray) -> list[Any]:
    """The results of all builders from one shared draw; with a number, that many of one, stacked on a leading axis."""
    sizes = [_drawn(build) * (times or 1) for build, times in builds]
    flat = jax.random.normal(key, (sum(sizes),))
    made = []
    for n, (build, times) in enumerate(builds):
        end, build_key = sum(sizes[: n + 1]), jax.random.fold_in(key, n)
        numbers = flat[end - sizes[n] : end]
        if times is None:
            made.append(build(Cut(numbers, build_key)))
        else:
            stacked = jax.vmap(lambda f, k, build=build: build(Cut(f, k)))
            made.append(stacked(numbers.reshape(times, -1), jax.random.split(build_key, times)))
    return made


def _drawn(build: Build) -> int:
    """How many numbers a builder draws."""
    count = _Count()
    jax.eval_shape(lambda: build(count))
    return count.drawn
