"""The cache of decoding: what keys said once, and what `locate` carries on, so that decoding equals the full forward.

It counts places (where to write, what the mask compares), never positions. A ring uses its places again, and so keeps
the index of what stands in each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num, PyTree

from posenc.attention import sides
from posenc.core.compose import Windowed, bare, imply, pick
from posenc.core.masks import Window, documents, since_start, whole
from posenc.core.parameters import bound
from posenc.core.scheme import At, Dims, Scheme, check_dims
from posenc.core.shapes import Sizes, check_params, label, plain


class Cache(NamedTuple):
    """Keys and values of one layer, `capacity` places for each sequence of the batch. `G` is the number of key heads,
    or of query heads where a scheme makes keys differ per query head."""

    k: Float[Array, "B G C e"]
    v: Float[Array, "B G C d"]
    said: PyTree
    position: PyTree[Num[Array, "B C"]]
    segment: Int[Array, "B C"]
    carry: PyTree
    document: Int[Array, " B"]
    """The document of the last token, padding left out; 0 before the first."""
    began: Int[Array, " B"]
    """The index at which that document began. Its first token may be overwritten, so this is kept."""
    length: Int[Array, ""]
    """The index of the next token, and its place where there is no ring."""
    index: Int[Array, " C"] | None
    """The index of what stands in each place of a ring; None where places are never used again."""

    @classmethod
    def empty(
        cls,
        scheme: Any,
        params: Any,
        dims: Dims,
        *,
        batch: int,
        capacity: int,
        dtype: Any,
        positions: Any = jnp.int32,
        ring: bool = False,
    ) -> Cache:
        """A cache with nothing in it: `batch` sequences of at most `capacity` tokens.

        `dtype` is that of the queries, keys and values to come, and `positions` that of their positions. `params` are
        one layer's, whole. Where info of keys becomes stale as the text grows (the limit "reencoded"), keys are stored
        as they are given, and a call gives what the whole text so far gives its last tokens.

        With `ring`, token n is written to place n mod `capacity`, for as long as decoding goes on; that serves
        attention in a window only: with `left` neighbours seen before a token, `capacity` is at least `left` and the
        new tokens of a call.

        Raises `ValueError` where the sizes do not fit or are not causal, for a scheme that no cache serves
        (the limit "cache"), and for a ring where a scheme reads whole rows or is told of the whole text; `TypeError`
        for a type that is not floating, and for a `ring` that is neither True nor False.
        """
        given, scheme, params = scheme, bound(bare(scheme)), plain(params)
        check_dims(dims)
        check_params(scheme, params, Sizes(dims.width, dims.heads, dims.head, dims.key_heads))
        dtype, positions = _kind("dtype", dtype, jnp.floating), _kind("positions", positions, jnp.number)
        if why := scheme.limits.get("cache"):
            raise ValueError(f"{label(scheme)} has no cache: {why}; run the whole sequence at each step.")
        if not dims.causal:
            raise ValueError("A cache serves decoding, where tokens see what came before them; make dims causal=True.")
        for name, value in (("batch", batch), ("capacity", capacity)):
            if (count := whole(value)) is None or count < 1:
                raise ValueError(f"{name} is {value!r}; it is a whole number of at least 1.")
        if not isinstance(ring, bool | np.bool_):
            raise TypeError(f"ring is {ring!r}; it is True or False.")
        if ring:
            causal = Window(None, 0)
            look = given.narrow(causal) if isinstance(given, Windowed) else Window(0, 0)
            check_ring(scheme, look, whole(capacity), 1)
        parts = pick(params, "layer"), pick(params, "heads")
        keys, place, _ = jax.eval_shape(lambda: blank(scheme, parts, dims, capacity, dtype, positions))
        zeros = lambda a: jnp.zeros((batch, *a.shape), a.dtype)  # noqa: E731
        first = jax.tree.map(lambda a: jnp.broadcast_to(a, (batch, *jnp.shape(a))), sides.start(scheme, parts, dims))
        return cls(
            *jax.tree.map(zeros, keys),
            jax.tree.map(zeros, place),
            zeros(jnp.zeros(capacity, jnp.int32)),
            first,
            jnp.zeros(batch, jnp.int32),
            jnp.zeros(batch, jnp.int32),
            jnp.int32(0),
            jnp.zeros(capacity, jnp.int32) if ring else None,
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
    return keep(scheme, parts, k, k, told, dims.heads), place, carry


def keep(scheme: Scheme, parts: Any, k: Array, v: Array, told: PyTree, heads: int) -> sides.Keys:
    """What is stored of new keys: what they say, or, where that is said anew in each call, they themselves."""
    if "reencoded" in scheme.limits:
        return sides.Keys(k.swapaxes(0, 1), v.swapaxes(0, 1), ())
    return sides.encode(scheme, parts, k, v, told, heads)


def check_ring(scheme: Scheme, look: Window, capacity: int, new: int) -> None:
    """Refuse a ring where a query would still need a key that was overwritten."""
    if scheme.reads in ("row", "heads"):
        raise ValueError(
            f"{label(scheme)} reads whole rows of scores, all keys in the order of their indices, and a ring overwrites"
            " them; leave ring out."
        )
    if why := scheme.limits.get("reencoded"):
        raise ValueError(
            f"{label(scheme)} encodes the whole text again in each call, since {why}, and a ring"
            " overwrites its beginning; leave ring out."
        )
    if look.left is None:
        raise ValueError(
            "A ring overwrites what no query needs any more, and under this mask each needs all before it; use"
            " mask=posenc.Window(left, 0), a scheme with window(n), or a cache without ring."
        )
    if look.left + new > capacity:
        raise ValueError(
            f"A ring of {capacity} places was given {new} new tokens that see {look.left} before them, which takes"
            f" {look.left + new}; pass fewer tokens at a time, or make it larger."
        )


def free(cache: Cache, new: int) -> Int[Array, " new"]:
    """The places that new tokens of one sequence are written to."""
    places = cache.length + jnp.arange(new, dtype=jnp.int32)
    return places if cache.index is None else places % cache.segment.size


def write(stored: PyTree, new: PyTree, places: Int[Array, " new"], axis: int) -> PyTree:
    """Put new entries at their places. What does not fit is dropped: the caller says so with NaN."""

    def put(old, new):
        return old.at[(slice(None),) * axis + (places,)].set(new.astype(old.dtype), mode="drop")

    return jax.tree.map(put, stored, new)


def last(cache: Cache, index: Int[Array, " new"], segment: Int[Array, " new"]) -> tuple[Array, Array]:
    """The document of the last of one sequence's new tokens, padding left out, and the index at which it began."""
    since = since_start(index, segment, cache.document, cache.began)
    now = documents(jnp.concatenate([cache.document[None], segment.astype(cache.document.dtype)]))[-1]
    return now, (index - since)[-1].astype(cache.began.dtype)
