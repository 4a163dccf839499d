"""What all heads of one sequence share about its pairs of tokens, for any rectangle of them and never the square."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Num, PyTree

from posenc.attention.kernels.parting import drawn
from posenc.core.masks import Window, sees


class Side(NamedTuple):
    """Queries, or keys, as tokens."""

    position: PyTree
    """What the scheme is told, an entry for each part of a chain; drawn distances stand for whole sequences."""
    index: Int[Array, " L"]
    segment: Int[Array, " L"] | None


class Pairs(NamedTuple):
    """Queries and keys, and who may look at whom."""

    query: Side
    key: Side
    look: Window
    scale: float
    heads: int
    implied: bool
    """Whether nothing was passed in the place of positions, so that distances are differences of indices."""

    def seen(self) -> Bool[Array, "Q K"]:
        """Where a query may look."""
        return sees(self.look, self.query.index, self.key.index, self.query.segment, self.key.segment)

    def distance(self) -> PyTree[Num[Array, "Q K"]]:
        """Query position minus key position, for each part of a chain, or the distance drawn for the pair."""
        return apart(self.query, self.key)


def apart(query: Side, key: Side) -> PyTree[Num[Array, "Q K"]]:
    """The distance of each query from each key."""

    def one(i: Any, j: Any) -> Any:
        return i.between(query.index, key.index) if drawn(i) else i[:, None] - j[None, :]

    return jax.tree.map(one, query.position, key.position, is_leaf=drawn)


def visible(look: Window, query: Side, key: Side, rows: int) -> Int[Array, " Q"]:
    """How many keys each query sees, counted for some rows at a time."""
    count = query.index.size
    if query.segment is None:  # the window's borders, cut off where the keys end
        first = 0 if look.left is None else jnp.maximum(query.index - look.left, 0)
        end = key.index.size if look.right is None else jnp.minimum(query.index + look.right + 1, key.index.size)
        return jnp.broadcast_to(jnp.maximum(end - first, 0), (count,)).astype(jnp.int32)

    def some(pair: tuple[Array, Array]) -> Array:
        return sees(look, pair[0], key.index, pair[1], key.segment).sum(-1, dtype=jnp.int32)

    if count <= rows:
        return some((query.index, query.segment))
    cut = lambda a: jnp.pad(a, (0, -count % rows)).reshape(-1, rows)  # noqa: E731
    return jax.lax.map(some, (cut(query.index), cut(query.segment))).reshape(-1)[:count]
