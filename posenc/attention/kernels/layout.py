"""How the arrays of one attention lie in tiles: what is static, which tiles there are, and where each one's tokens are.

A tile is a block of queries by a block of keys; `n` counts the former and `m` the latter.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from posenc.attention.kernels.form import Weighting
from posenc.attention.kernels.parting import lengthened
from posenc.core.masks import Window
from posenc.core.scheme import Scheme
from posenc.numerics.sizes import are_numbers, round_up


@dataclasses.dataclass(frozen=True)
class Tiling:
    """Static facts: the scheme and its mask, the true lengths, and the sizes of a tile."""

    scheme: Scheme
    window: Window
    weighting: Weighting
    late: float
    """Scale of q·k in a tile; 1 if the queries are already scaled."""
    heads: int
    queries: int
    keys: int
    rows: int
    """Queries of a tile."""
    cols: int
    """Keys of a tile."""
    banded: bool
    """True if all that `score` adds is a band."""

    @property
    def scores(self) -> bool:
        """Tell whether the scheme has a score of its own."""
        return self.scheme.overrides("score")

    @property
    def adds(self) -> bool:
        """Tell whether the scheme adds to the weighted values."""
        return self.scheme.overrides("value_bias")


class Arrays(NamedTuple):
    """All arrays that attention reads, whole. Tokens come first, as in `posenc.attend`: nothing long is transposed.

    Query heads are nested, `[G, R]`, in parameters and in tiles: each key head, and each query head of it.
    """

    layer: PyTree
    head_params: PyTree
    """The parameters that all heads share, and those of each head."""
    lags: PyTree
    """Sampled distances, where positions are such."""
    w: Float[Array, "G R N"] | None
    """The band: what is added to a score at each difference of indices."""
    sinks: Float[Array, "G R"] | None
    prefix: Array | None
    seed: Array | None
    """A key's score for each head, the length of the prefix, and what decides which weights are dropped."""
    q: Float[Array, "Q H e"]
    k: Float[Array, "K G e"]
    v: Float[Array, "K G d"]
    query_info: PyTree
    key_info: PyTree
    qp: PyTree
    kp: PyTree
    """Positions of queries, and of keys."""
    start: Array
    begin: Array
    """The index of the first query, and that of the first key."""
    qs: Array | None
    ks: Array | None
    """Segments of queries, and of keys."""
    began: Array | None
    """The beginning of each query's document, if the mask counts from there."""
    qu: Array | None
    ku: Array | None
    """True for the queries and the keys without a place, if any may have none."""


QUERY, KEY = ("q", "query_info", "qp", "qs", "began", "qu"), ("k", "v", "key_info", "kp", "ks", "ku")
"""The arrays of queries and of keys; the first axis counts tokens."""
TURNED = ("k", "v")
"""Their gradient is gathered with tokens last, `[G, e, K]`: so no product has to be turned, tile by tile."""


def padded(tiling: Tiling, a: Arrays) -> Arrays:
    """Tokens up to whole blocks; masks leave out what was added."""
    pad = lambda block: lambda b: lengthened(b, 0, block)  # noqa: E731
    query = {name: jax.tree.map(pad(tiling.rows), getattr(a, name)) for name in QUERY}
    key = {name: jax.tree.map(pad(tiling.cols), getattr(a, name)) for name in KEY}
    return a._replace(**query, **key)


def blocks(tiling: Tiling) -> Array:
    """Numbers of the blocks of queries, of 32 bits as indices are."""
    return jnp.arange(round_up(tiling.queries, tiling.rows) // tiling.rows, dtype=jnp.int32)


def over_keys(tiling: Tiling, a: Arrays, n: Array, step: Any, state: Any) -> Any:
    """`step` over the blocks of keys that a block of queries may see; masked only where the mask cuts a tile."""
    rows, cols, left, right = tiling.rows, tiling.cols, tiling.window.left, tiling.window.right
    count, first = round_up(tiling.keys, cols) // cols, a.start - a.begin + n * rows
    low, high = jnp.int32(0), jnp.int32(count)
    inner, outer = jnp.int32(0), jnp.int32(tiling.keys // cols)
    until = lambda index: jnp.clip(-((a.begin - index) // cols), 0, count)  # noqa: E731  # tiles with keys before it
    if left is not None:
        low = jnp.clip((first - left) // cols, 0, count)
        inner = -((left - first - rows + 1) // cols)
    if right is not None:
        high = jnp.clip((first + rows - 1 + right) // cols + 1, 0, count)
        outer = jnp.minimum((first + right + 1) // cols, outer)
    if a.prefix is not None:
        assert a.began is not None
        high = jnp.maximum(high, until(a.began[(n + 1) * rows - 1] + a.prefix))
    if a.qs is not None or tiling.window.of_positions:
        if tiling.window.sinks:
            assert a.began is not None
            low = jnp.minimum(low, until(a.began[n * rows] + 1) - 1).clip(0)
        return jax.lax.fori_loop(low, high, functools.partial(step, masked=True), state)
    if tiling.window.sinks:
        early = jnp.minimum(low, until(tiling.window.sinks))
        state = jax.lax.fori_loop(jnp.int32(0), early, functools.partial(step, masked=True), state)
    inner = jnp.clip(inner, low, jnp.maximum(low, high))
    outer = jnp.clip(outer, inner, jnp.maximum(inner, high))
    if left is not None:
        state = jax.lax.fori_loop(low, inner, functools.partial(step, masked=True), state)
    state = jax.lax.fori_loop(inner, outer, functools.partial(step, masked=False), state)
    if right is not None or not are_numbers(tiling.keys) or tiling.keys % cols:
        state = jax.lax.fori_loop(outer, high, functools.partial(step, masked=True), state)
    return state


def queries(tiling: Tiling, a: Arrays, n: Array) -> Arrays:
    """One block of queries, their heads nested, and in front of the tokens for the products: `[G, R, rows, e]`."""
    rows = _cut(a, QUERY, n * tiling.rows, tiling.rows)
    info = jax.tree.map(lambda b: nested(b, a), rows.query_info)
    return rows._replace(q=jnp.moveaxis(nested(rows.q, a), 0, 2), query_info=info)


def keys(tiling: Tiling, a: Arrays, m: Array) -> Arrays:
    """One block of keys."""
    return _cut(a, KEY, m * tiling.cols, tiling.cols)


def _cut(a: Arrays, names: tuple[str, ...], at: Any, size: int) -> Arrays:
    take = lambda b: jax.lax.dynamic_slice_in_dim(b, at, size)  # noqa: E731
    return a._replace(**{name: jax.tree.map(take, getattr(a, name)) for name in names})


def corner(tiling: Tiling, n: Array, m: Array) -> Array:
    """Return the first diagonal of a tile in the band."""
    return round_up(tiling.keys, tiling.cols) - tiling.cols + n * tiling.rows - m * tiling.cols


def added(tiling: Tiling, sums: Arrays, grad: Arrays, n: Array, m: Array) -> Arrays:
    """The gradient of one tile, added at its place."""

    def put(total, part, axis, at):
        part = part.astype(total.dtype)
        old = jax.lax.dynamic_slice_in_dim(total, at, part.shape[axis], axis)
        return jax.lax.dynamic_update_slice_in_dim(total, old + part, at, axis)

    done = {}
    for name, total in zip(Arrays._fields, sums, strict=True):
        add: Any = lambda total, part: total + part.astype(total.dtype)  # noqa: E731
        if name in KEY:
            add = functools.partial(put, axis=0, at=m * tiling.cols)
        if name in TURNED:
            add = functools.partial(put, axis=2, at=m * tiling.cols)
        if name == "w":
            add = functools.partial(put, axis=2, at=corner(tiling, n, m))
        done[name] = jax.tree.map(add, total, getattr(grad, name))
    return Arrays(**done)


def nested(b: Array, a: Arrays) -> Array:
    """Query heads, after tokens, under their key heads; info that is equal for all heads keeps sizes of 1 there."""
    alike = b.shape[1] == 1
    return b.reshape(b.shape[0], 1 if alike else a.k.shape[1], -1, *b.shape[2:])


def flat(b: Array) -> Array:
    """Return the inverse of `nested`."""
    return b.reshape(b.shape[0], -1, *b.shape[3:])


def heads_first(b: Float[Array, "K G e"]) -> Float[Array, "G K e"]:
    """A block of keys or values as products take it."""
    return b.swapaxes(0, 1)


def lined(blocks: Array) -> Array:
    """Blocks of tokens, one after another."""
    return blocks.reshape(-1, *blocks.shape[2:])
