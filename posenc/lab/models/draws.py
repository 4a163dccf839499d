"""Initial weights cut from one normal draw: each further draw of its own would cost a compilation as long as a step's.

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
    """What `nnx.Rngs` offers and modules here use: `rngs.params.normal(shape)`, and `rngs.params()` for a key."""

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
    """Counts what a build draws."""

    def __init__(self):
        super().__init__(jnp.zeros(0), jax.random.key(0))
        self.drawn = 0

    def normal(self, shape):
        self.drawn += math.prod(shape)
        return jnp.zeros(shape)


def meant(key: PRNGKeyArray, *words: str | int | Array) -> PRNGKeyArray:
    """A key for what these words say it draws."""
    for word in words:  # crc32, since `hash` of a text differs from process to process
        key = jax.random.fold_in(key, np.uint32(zlib.crc32(word.encode())) if isinstance(word, str) else word)
    return key


def cut(builds: list[tuple[Build, int | None]], key: PRNGKeyArray) -> list[Any]:
    """What each build makes of one shared draw; with a number, that many of it, stacked on a leading axis."""
    sizes = [_drawn(build) * (times or 1) for build, times in builds]
    flat = jax.random.normal(key, (sum(sizes),))
    made = []
    for place, (build, times) in enumerate(builds):
        end, own = sum(sizes[: place + 1]), jax.random.fold_in(key, place)
        mine = flat[end - sizes[place] : end]
        if times is None:
            made.append(build(Cut(mine, own)))
        else:
            stacked = jax.vmap(lambda f, k, build=build: build(Cut(f, k)))
            made.append(stacked(mine.reshape(times, -1), jax.random.split(own, times)))
    return made


def _drawn(build: Build) -> int:
    """How many numbers a build draws."""
    count = _Count()
    jax.eval_shape(lambda: build(count))
    return count.drawn
