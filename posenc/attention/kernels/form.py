"""What every kernel takes: the form of an attention, the same for all tokens, and one sequence's encoded tokens."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Num, PyTree

from posenc.attention.kernels.parting import drawn
from posenc.core.masks import Window, sees
from posenc.core.scheme import Scheme


class Form(NamedTuple):
    """One attention, apart from its tokens."""

    scheme: Scheme
    params: tuple[Any, Any]
    """The parameters that all heads share, and those of each head."""
    window: Window
    scale: float
    """The factor of q·k, by the width of a head before any hook widened it."""
    heads: int
    """Query heads."""
    implied: bool
    """Whether no positions were passed, so that distances are differences of indices."""


class Side(NamedTuple):
    """Where the queries stand, or the keys."""

    position: PyTree
    """An entry for each part of a chain; sampled distances stand for whole sequences."""
    index: Int[Array, " L"]
    segment: Int[Array, " L"] | None


class Encoded(NamedTuple):
    """One sequence's tokens after the hooks `query`, `key` and `value`, heads first. `G` divides `H`."""

    q: Float[Array, "H Q e"]
    query_info: PyTree
    """What `score` reads of each query, `[H, Q, ...]`; info that is equal for all heads has a head axis of size 1."""
    k: Float[Array, "G K e"]
    v: Float[Array, "G K d"]
    key_info: PyTree
    """What `score` reads of each key, `[G, K, ...]`."""
    query: Side
    key: Side


def visible(form: Form, encoded: Encoded) -> Bool[Array, "Q K"]:
    """Which keys each query sees."""
    query, key = encoded.query, encoded.key
    return sees(form.window, query.index, key.index, query.segment, key.segment)


def distance(query: Side, key: Side) -> PyTree[Num[Array, "Q K"]]:
    """Query position minus key position, for each part of a chain, or the distance sampled for the pair."""

    def one(i: Any, j: Any) -> Any:
        return i.between(query.index, key.index) if drawn(i) else i[:, None] - j[None, :]

    return jax.tree.map(one, query.position, key.position, is_leaf=drawn)


def head_axes(info: PyTree, heads: int) -> tuple[PyTree, PyTree]:
    """Query info as `jax.vmap` over heads takes it: without head axes of size 1, and where the others are."""
    axes = jax.tree.map(lambda a: 0 if a.shape[0] == heads else None, info)
    return jax.tree.map(lambda a, axis: a[0] if axis is None else a, info, axes), axes


def count_visible(window: Window, query: Side, key: Side, rows: int) -> Int[Array, " Q"]:
    """How many keys each query sees, counted for `rows` queries at a time."""
    count = query.index.size
    if query.segment is None:  # the window's borders, cut off where the keys end
        first = 0 if window.left is None else jnp.maximum(query.index - window.left, 0)
        end = key.index.size if window.right is None else jnp.minimum(query.index + window.right + 1, key.index.size)
        return jnp.broadcast_to(jnp.maximum(end - first, 0), (count,)).astype(jnp.int32)

    def some(pair: tuple[Array, Array]) -> Array:
        return sees(window, pair[0], key.index, pair[1], key.segment).sum(-1, dtype=jnp.int32)

    if count <= rows:
        return some((query.index, query.segment))
    cut = lambda a: jnp.pad(a, (0, -count % rows)).reshape(-1, rows)  # noqa: E731
    return jax.lax.map(some, (cut(query.index), cut(query.segment))).reshape(-1)[:count]
