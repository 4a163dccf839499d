"""Arguments of every kernel: the form of an attention, the same for all tokens, and one sequence's encoded tokens."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Num, PyTree, UInt32

from posenc.attention.kernels.parting import is_sampled_distance, lengthened
from posenc.core.masks import Window, sees
from posenc.core.scheme import Scheme
from posenc.numerics.sizes import are_numbers

CapOf = Literal["sum", "score"]
"""The scores that a cap bounds: the result of the scheme's `score`, or q·k alone, before it."""


class Weighting(NamedTuple):
    """How scores become weights, beside what the scheme says of it."""

    scale: float
    """The factor of q·k, by the width of a head before any hook widened it."""
    cap: float | None = None
    """The bound of scores, which approach it smoothly."""
    dropout: float = 0.0
    """The share of weights that are dropped."""
    cap_of: CapOf = "sum"


class Form(NamedTuple):
    """One attention whose arguments were validated, apart from its tokens."""

    scheme: Scheme
    params: tuple[Any, Any]
    """The parameters that all heads share, and those of each head."""
    window: Window
    weighting: Weighting
    sinks: Float[Array, " H"] | None
    """A score for each head of a key that has no value."""
    heads: int
    """Query heads."""
    implied: bool
    """True if no positions were passed, so that distances are differences of indices."""
    self_attention: bool
    """True if queries and keys are the same tokens."""
    kernel: str
    in_blocks: bool = False
    """True if sequences go through the kernel in blocks, and heads through the dense one."""
    by_distance: bool = False
    """True if a bias may be computed once for each distance. The dense kernel that was asked for by name does not do
    so; it is the reference for all others."""
    unplaced: int | None = None
    """The position of tokens that have no place: no score and no bias is theirs."""
    shares: tuple[Form, ...] = ()
    """The forms of heads that belong to different schemes, without parameters and sinks; empty where all have one."""

    def counts(self, pairs: Pairs) -> bool:
        """Tell whether the mask counts from the beginning of a document."""
        return self.window.sinks > 0 or pairs.prefix is not None


class Side(NamedTuple):
    """Indices and positions of the queries, or of the keys."""

    position: PyTree
    """An entry for each part of a chain; sampled distances stand for whole sequences."""
    index: Int[Array, " L"]
    segment: Int[Array, " L"] | None
    began: Int[Array, " L"] | None = None
    """The index at which each query's document began, where the mask counts from there."""
    unplaced: Bool[Array, " L"] | None = None
    """True for tokens without a place, if any may have none."""


class Pairs(NamedTuple):
    """Facts about pairs of tokens that one sequence was given; None for nothing."""

    prefix: Int[Array, ""] | None = None
    """How many first tokens of each document all of it sees."""
    allowed: Bool[Array, "Q K"] | None = None
    """The keys that each query may see, among those that the window leaves."""
    seed: UInt32[Array, " 2"] | None = None
    """The seed that decides which weights are dropped."""


class Encoded(NamedTuple):
    """One sequence's tokens after the hooks `query`, `key` and `value`, heads first. `G` divides `H`."""

    q: Float[Array, "H Q e"]
    query_info: PyTree
    """The info of each query that `score` reads, `[H, Q, ...]`; info that is equal for all heads has a head axis of
    size 1."""
    k: Float[Array, "G K e"]
    v: Float[Array, "G K d"]
    key_info: PyTree
    """The info of each key that `score` reads, `[G, K, ...]`."""
    query: Side
    key: Side
    pairs: Pairs = Pairs()


def visible(form: Form, encoded: Encoded) -> Bool[Array, "Q K"]:
    """Return the keys that each query sees."""
    return _visible(form.window, encoded.query, encoded.key, encoded.pairs)


def _visible(window: Window, query: Side, key: Side, pairs: Pairs) -> Bool[Array, "Q K"]:
    apart = first_distance(distance(query, key), placed(query, key)) if window.of_positions else None
    seen = sees(window, query.index, key.index, query.segment, key.segment, query.began, pairs.prefix, apart)
    return seen if pairs.allowed is None else seen & pairs.allowed


def distance(query: Side, key: Side) -> PyTree[Num[Array, "Q K"]]:
    """Query position minus key position, for each part of a chain, or the distance sampled for the pair."""

    def difference(i: Any, j: Any) -> Any:
        return i.between(query.index, key.index) if is_sampled_distance(i) else i[:, None] - j[None, :]

    return jax.tree.map(difference, query.position, key.position, is_leaf=is_sampled_distance)


def first_distance(apart: PyTree[Num[Array, "Q K"]], placed: Bool[Array, "Q K"] | None) -> Num[Array, "Q K"]:
    """The distance that a window in positions reads: that of the first scheme of a sum, 0 where there is none."""
    first = jax.tree.leaves(apart)[0]
    return first if placed is None else jnp.where(placed, first, 0)


def placed(query: Side, key: Side) -> Bool[Array, "Q K"] | None:
    """Return the pairs of two tokens that have a place; None if all have."""
    if query.unplaced is None or key.unplaced is None:
        return None
    return ~(query.unplaced[:, None] | key.unplaced[None, :])


def capped(s: Float[Array, "*rows K"], weighting: Weighting, of: CapOf) -> Float[Array, "*rows K"]:
    """Scores that approach a bound smoothly, cap · tanh(s / cap), where the cap is of these (Gemma Team, 2024, Gemma 2,
    §2)."""
    cap = weighting.cap
    return s if cap is None or weighting.cap_of != of else cap * jnp.tanh(s / cap)


def head_axes(info: PyTree, heads: int) -> tuple[PyTree, PyTree]:
    """Query info as `jax.vmap` over heads takes it: without head axes of size 1, and where the others are."""
    axes = jax.tree.map(lambda a: 0 if a.shape[0] == heads else None, info)
    return jax.tree.map(lambda a, axis: a[0] if axis is None else a, info, axes), axes


def count_visible(window: Window, query: Side, key: Side, rows: int, pairs: Pairs) -> Int[Array, " Q"]:
    """How many keys each query sees, counted for `rows` queries at a time."""
    count = query.index.size
    plain = query.segment is None and query.began is None and pairs.allowed is None and not window.of_positions
    if plain:  # the window's borders, cut off
        first = 0 if window.left is None else jnp.maximum(query.index - window.left, 0)
        end = key.index.size if window.right is None else jnp.minimum(query.index + window.right + 1, key.index.size)
        return jnp.broadcast_to(jnp.maximum(end - first, 0), (count,)).astype(jnp.int32)

    def count_rows(query: Side, pairs: Pairs) -> Array:
        return _visible(window, query, key, pairs).sum(-1, dtype=jnp.int32)

    if are_numbers(count) and count <= rows:
        return count_rows(query, pairs)
    cut = lambda a: lengthened(a, 0, rows).reshape(-1, rows, *a.shape[1:])  # noqa: E731
    query = query if window.of_positions else query._replace(position=None)
    blocks = jax.tree.map(cut, (query, pairs.allowed))
    each = jax.lax.map(lambda block: count_rows(block[0], pairs._replace(allowed=block[1])), blocks)
    return each.reshape(-1)[:count]
