"""What a model needs to go on token by token: caches of stacked layers, and the part of what is told that is new.

A model that can has two functions. `begin(inputs, key, most)` gives what it carries on, for as many tokens as `inputs`
have room for, of which a call brings at most so many; `proceed(carry, inputs, key, first, new)` gives the logits of
`new` tokens from the place `first` on, those of a full pass, and what to carry on. `inputs` hold the text so far.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from posenc.attention.cache import Cache
from posenc.core.compose import Windowed, axes, bare
from posenc.core.distances import drawn
from posenc.core.masks import Window


def part(a: Array, first: int | Int[Array, ""], new: int) -> Array:
    """`new` tokens of `[B, T, ...]` from `first` on."""
    return jax.lax.dynamic_slice_in_dim(a, first, new, 1)


def placed(scheme: Any, positions: Any, first: int | Int[Array, ""], new: int) -> Any:
    """The positions of `new` tokens from `first` on, as `posenc.place` gave them for all."""
    if drawn(positions):
        raise ValueError("Drawn distances are those of a whole sequence, so nothing goes on token by token under them.")

    def one(a, many):
        if isinstance(many, tuple):
            return tuple(one(*both) for both in zip(a, many, strict=True))
        a = jnp.asarray(a)
        return jax.lax.dynamic_slice_in_dim(a, first, new, a.ndim - (1 if many == 1 else 2))

    return one(positions, axes(bare(scheme)))


def empty(
    scheme: Any, attention: Any, positions: Any, *, batch: int, length: int, most: int, dtype: Any, tied: Any
) -> Cache:
    """Caches of one place in the period, stacked as its layers are: a ring where a window lets keys be forgotten."""
    plain, left = bare(scheme), scheme.narrow(Window(None, 0)).left if isinstance(scheme, Windowed) else None
    keeps = left is None or "reencoded" in plain.limits or plain.reads in ("row", "heads")
    capacity = length if keeps else min(length, left + most)
    kind = jnp.result_type(*jax.tree.leaves(positions)) if jax.tree.leaves(positions) else jnp.int32
    one = jax.tree.map(lambda a: a[0], attention)
    ring = capacity < length
    cache = one.empty(batch=batch, capacity=capacity, dtype=dtype, positions=kind, ring=ring, tied=tied)
    layers = jax.tree.leaves(attention)[0].shape[0]
    return jax.tree.map(lambda a: jnp.broadcast_to(a, (layers, *a.shape)), cache)
