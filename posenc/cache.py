"""The cache of decoding: what keys said once, and what `locate` carries on, so that decoding equals the full forward.

It counts places (where to write, what the mask compares), never positions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Num, PyTree

from posenc import sides
from posenc.belongs import Sizes, check_params, label, plain
from posenc.compose import bare, imply, pick
from posenc.masks import whole
from posenc.parameters import bound
from posenc.scheme import At, Dims, Scheme, check_dims


class Cache(NamedTuple):
    """Keys and values of one layer, `capacity` places for each sequence of the batch. `G` is the number of key heads,
    or of query heads where a scheme makes keys differ per query head."""

    k: Float[Array, "B G C e"]
    v: Float[Array, "B G C d"]
    said: PyTree
    position: PyTree[Num[Array, "B C"]]
    segment: Int[Array, "B C"]
    carry: PyTree
    length: Int[Array, ""]
    """The next free place."""

    @classmethod
    def empty(
        cls, scheme: Any, params: Any, dims: Dims, *, batch: int, capacity: int, dtype: Any, positions: Any = jnp.int32
    ) -> Cache:
        """A cache with nothing in it: `batch` sequences of at most `capacity` tokens.

        `dtype` is that of the queries, keys and values to come, and `positions` that of their positions. `params` are
        one layer's, whole. Raises `ValueError` where the sizes do not fit or are not causal, and for a scheme whose
        stored keys would be wrong later (`Scheme.uncached`); `TypeError` for a type that is not floating.
        """
        scheme, params = bound(bare(scheme)), plain(params)
        check_dims(dims)
        check_params(scheme, params, Sizes(dims.width, dims.heads, dims.head, dims.key_heads))
        dtype, positions = _kind("dtype", dtype, jnp.floating), _kind("positions", positions, jnp.number)
        if scheme.uncached:
            raise ValueError(f"{label(scheme)} has no cache: {scheme.uncached}; run the whole sequence at each step.")
        if not dims.causal:
            raise ValueError("A cache serves decoding, where tokens see what came before them; make dims causal=True.")
        for name, value in (("batch", batch), ("capacity", capacity)):
            if (count := whole(value)) is None or count < 1:
                raise ValueError(f"{name} is {value!r}; it is a whole number of at least 1.")
        parts = pick(params, "layer"), pick(params, "heads")
        keys, place, _ = jax.eval_shape(lambda: blank(scheme, parts, dims, capacity, dtype, positions))
        zeros = lambda a: jnp.zeros((batch, *a.shape), a.dtype)  # noqa: E731
        first = jax.tree.map(lambda a: jnp.broadcast_to(a, (batch, *jnp.shape(a))), sides.start(scheme, parts, dims))
        return cls(
            *jax.tree.map(zeros, keys),
            jax.tree.map(zeros, place),
            zeros(jnp.zeros(capacity, jnp.int32)),
            first,
            jnp.int32(0),
        )


def _kind(name: str, dtype: Any, kind: Any) -> Any:
    """The type that jax keeps of what was given, if it is of this kind."""
    try:
        found = None if dtype is None else jax.dtypes.canonicalize_dtype(dtype)
    except TypeError:
        found = None
    if found is None or not jnp.issubdtype(found, kind) or jnp.issubdtype(found, jnp.complexfloating):
        least = "a floating type, such as jnp.float32" if kind is jnp.floating else "jnp.int32 or a floating type"
        raise TypeError(f"{name} is {dtype!r}; it is {least}.")
    return found


def blank(scheme: Scheme, parts: Any, dims: Dims, capacity: int, dtype: Any, positions: Any):
    """What one sequence of `capacity` tokens would store; only its shapes and types are used."""
    none = jnp.zeros(capacity, jnp.int32)
    place = imply(scheme, jnp.zeros(capacity, positions))
    at = At(place, none, none, none, jnp.int32(0), dims.heads)
    x = jnp.zeros((capacity, dims.width), dtype)
    told, carry = sides.tell(scheme, parts, x, at, sides.start(scheme, parts, dims))
    k = jnp.zeros((capacity, dims.key_heads or dims.heads, dims.head), dtype)
    return sides.encode(scheme, parts, k, k, told, dims.heads), place, carry


def write(stored: PyTree, new: PyTree, length: Array, axis: int) -> PyTree:
    """Put new entries at the next free places. What does not fit is dropped: the caller says so with NaN."""

    def put(old, new):
        places = length + jnp.arange(new.shape[axis])
        return old.at[(slice(None),) * axis + (places,)].set(new.astype(old.dtype), mode="drop")

    return jax.tree.map(put, stored, new)


def last(segment: Int[Array, " C"], length: Array) -> tuple[Array, Array]:
    """The document of the last token stored, padding left out, and the index at which it began; 0 and 0 before one."""
    place = jnp.arange(segment.size)
    real = (place < length) & (segment > 0)
    end = jnp.where(real, place, -1).max()
    now = jnp.where(end < 0, 0, segment[jnp.maximum(end, 0)])
    other = jnp.where(real & (segment != now), place, -1).max()
    began = jnp.argmax(real & (place > other))
    return now, began.astype(length.dtype)
