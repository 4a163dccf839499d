"""Attention in tiles, in memory that grows with the length and not its square: an online softmax, and one gradient.

Scores are made tile by tile, by the scheme's own `score`, and folded at once into a running maximum, a running sum and
the weighted values (Milakov & Gimelshein, 2018; Rabe & Staats, 2021; Dao et al., 2022). What is kept for the gradient
is the output and the logarithm of each row's sum; the backward pass makes each tile anew. With P the weights and o the
output, the gradient of the scores is

    dS = P ∘ (dO Vᵀ - D),    D = rowsum(dO ∘ o)

and from there it flows through `score` itself, by `jax.vjp` of one tile: no scheme writes a gradient, and every number
that `score` reads, of the scheme or of a token, receives its own. A tile that the mask empties is not computed.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from posenc import sides
from posenc.compose import merge
from posenc.kernels import products
from posenc.kernels.band import band, toeplitz
from posenc.kernels.pairs import Pairs, Side, apart
from posenc.kernels.parting import drawn, join, lengthened, part, varies, varying
from posenc.masks import Window, sees
from posenc.scheme import Scheme, Tile


@dataclasses.dataclass(frozen=True)
class Form:
    """What is static: the scheme and its mask, the true lengths, and the sizes of a tile."""

    scheme: Scheme
    look: Window
    scale: float
    late: float
    """What multiplies q·k in the tile: nothing is left to do where the queries could be multiplied without loss."""
    heads: int
    queries: int
    keys: int
    rows: int
    cols: int
    banded: bool
    """Whether all that `score` adds is a band."""

    @property
    def scores(self) -> bool:
        return self.scheme.overrides("score")

    @property
    def adds(self) -> bool:
        return self.scheme.overrides("extra")


class Sides(NamedTuple):
    """All arrays that attention reads, whole. Tokens come first, as in `posenc.attend`: nothing long is transposed.

    Query heads are nested, `[G, R]`, in parameters and in tiles: each key head, and each query head of it.
    """

    layer: PyTree
    own: PyTree
    lags: PyTree
    """Drawn distances, where positions are such."""
    w: Float[Array, "G R N"] | None
    q: Float[Array, "Q H e"]
    k: Float[Array, "K G e"]
    v: Float[Array, "K G d"]
    i: PyTree
    j: PyTree
    qp: PyTree
    kp: PyTree
    start: Array
    """The index of the first query, and that of the first key."""
    begin: Array
    qs: Array | None
    ks: Array | None


QUERY, KEY = ("q", "i", "qp", "qs"), ("k", "v", "j", "kp", "ks")
"""What belongs to queries and to keys; the first axis counts tokens."""
TURNED = ("k", "v")
"""Their gradient is gathered with tokens last, `[G, e, K]`: so no product has to be turned, tile by tile."""


def mix(
    scheme: Scheme, params: tuple[Any, Any], q: Array, keys: sides.Keys, told: PyTree, pairs: Pairs, block: int
) -> Float[Array, "Q H d"]:
    """Every row of every head, over all keys, in tiles of `block` queries and as many keys."""
    form, whole = gathered(scheme, params, q, keys, told, pairs, block)
    out = _attention(form, *part(varying(whole, whole), varies)).astype(keys.v.dtype)
    return sides.receive(scheme, params, out[: form.queries], told)


def gathered(
    scheme: Scheme, params: tuple[Any, Any], q: Array, keys: sides.Keys, told: PyTree, pairs: Pairs, block: int,
    parts: int = 1,
) -> tuple[Form, Sides]:  # fmt: skip
    """What is static and what is not, up to whole tiles.

    The keys may be one of several equal `parts` of the sequence; then the band is of all.
    """
    exact = jnp.promote_types(q.dtype, jnp.float32)
    asked, said = sides.ask(scheme, params, q, told)
    (heads, queries, _), (groups, count, _) = asked.shape, keys.k.shape
    nested = lambda a: a.reshape(groups, heads // groups, *a.shape[1:])  # noqa: E731
    first = lambda tree: jax.tree.map(lambda a: a.swapaxes(0, 1), tree)  # noqa: E731
    place = pairs.query.position
    by_gap = pairs.implied or all(map(drawn, jax.tree.leaves(place, is_leaf=drawn)))
    banded = by_gap and scheme.reads == "distance" and not scheme.overrides("extra")
    late = pairs.scale if asked.dtype != exact else 1.0
    asked = asked if asked.dtype != exact else asked * pairs.scale
    sizes = heads, queries, count, min(block, queries), min(block, count)
    form = Form(scheme, pairs.look, pairs.scale, late, *sizes, banded)
    w, start = None, pairs.query.index[0]
    if banded:
        past = (parts - 1) * count + _up(count, form.cols) - 1
        gaps = jnp.arange(past + _up(queries, form.rows)) - past
        gaps = start + jnp.clip(gaps, 1 - parts * count, queries - 1).astype(jnp.int32)
        w = nested(band(scheme, params, gaps, None if pairs.implied else place, heads, exact))
    (lags, qp), (_, kp) = (part(side.position, drawn) for side in (pairs.query, pairs.key))
    layer, own = params
    whole = Sides(
        layer, jax.tree.map(nested, own), lags, w, first(asked), *first(keys[:2]), first(said), first(keys.said),
        qp, kp, start, pairs.key.index[0], pairs.query.segment, pairs.key.segment,
    )  # fmt: skip
    return form, _padded(form, whole)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attention(form: Form, some: Sides, rest: Sides) -> Float[Array, "Q H d"]:
    return forward(form, some, rest)[0]


def forward(form: Form, some: Sides, rest: Sides) -> tuple[Array, tuple]:
    """The output, and what its gradient needs: the logarithm of each row's sum, infinite where nothing is seen."""
    a = join(some, rest)
    o, lse = jax.lax.map(functools.partial(_row, form, a), _blocks(form))
    return _lined(o), (some, rest, _lined(o), _lined(lse))


def _row(form: Form, a: Sides, n: Array) -> tuple[Array, Array]:
    """The rows of one block of queries: their output, and the logarithm of the sum of their exponentials."""
    mine = _queries(form, a, n)
    exact = jnp.promote_types(a.q.dtype, jnp.float32)
    lead = mine.q.shape[:3]
    first = jnp.zeros((*lead, a.v.shape[-1]), exact), jnp.full(lead, -jnp.inf, exact), jnp.zeros(lead, exact)
    first = varying(first, a)

    def step(m: Array, state: tuple, masked: bool) -> tuple:
        out, top, total = state
        t = _cut(mine, KEY, m * form.cols, form.cols)
        tile = _Tile(form, t, n, m, masked)
        s = tile.hidden(tile.score(tile.read, tile.raw))
        new = jnp.maximum(top, s.max(-1))
        safe = jnp.where(new > -jnp.inf, new, 0.0)
        e, shrink = jnp.exp(s - safe[..., None]), jnp.exp(top - safe)
        mixed = products.mixed(e, _heads_first(t.v), exact)
        if form.adds:
            mixed = mixed + tile.extra(tile.read, e)
        return out * shrink[..., None] + mixed, new, total * shrink + e.sum(-1)

    out, top, total = _over_keys(form, a, n, step, first)
    some = total > 0
    out = out / jnp.where(some, total, 1.0)[..., None]
    lse = jnp.where(some, jnp.where(some, top, 0.0) + jnp.log(jnp.where(some, total, 1.0)), jnp.inf)
    return _flat(jnp.moveaxis(out, 2, 0)), _flat(jnp.moveaxis(lse, 2, 0))


def _backward(form: Form, saved: tuple, do: Array) -> tuple[Sides, None]:
    return jax.tree.map(lambda g, b: g.astype(b.dtype), gradient(form, saved, do), saved[0]), None


def gradient(form: Form, saved: tuple, do: Array) -> Sides:
    """The gradient of all that has one, in float32 at least. The rows that were saved may have seen more keys."""
    some, rest, o, lse = saved
    a = join(some, rest)
    exact = lse.dtype
    zero = lambda b: jnp.zeros(b.shape, jnp.promote_types(b.dtype, exact))  # noqa: E731
    zeros = lambda tree: varying(jax.tree.map(zero, tree), a)  # noqa: E731
    turned = {name: getattr(some, name).transpose(1, 2, 0) for name in TURNED}
    keep = zeros(some._replace(**dict.fromkeys(QUERY), **turned))  # what all blocks of queries add to
    whole, means = do.astype(exact), (do.astype(exact) * o).sum(-1)

    def block(keep: Sides, n: Array) -> tuple[Sides, dict[str, PyTree]]:
        mine, at = _queries(form, a, n), n * form.rows
        do, mean, top = (_nested(jax.lax.dynamic_slice_in_dim(b, at, form.rows), a) for b in (whole, means, lse))
        do, mean, top = (jnp.moveaxis(b, 0, 2) for b in (do, mean, top))
        own = zeros(_queries(form, some, n))

        def step(m: Array, sums: Sides, masked: bool) -> Sides:
            t = _cut(mine, KEY, m * form.cols, form.cols)
            tile = _Tile(form, t, n, m, masked)
            s, pull = jax.vjp(tile.score, tile.read, tile.raw)
            p = jnp.exp(tile.hidden(s) - top[..., None])
            dp = products.scores(do.astype(t.v.dtype), _heads_first(t.v), exact)
            if form.adds:
                added, apart = jax.vjp(tile.extra, tile.read, p)
                more, extra = apart(do.astype(added.dtype))
                dp = dp + extra
            read, raw = pull((p * (dp - mean[..., None])).astype(s.dtype))
            if form.adds:
                read = jax.tree.map(jnp.add, read, more)
            raw = (raw if form.late == 1 else raw * form.late).astype(t.k.dtype)
            grad = read._replace(
                q=products.mixed(raw, _heads_first(t.k), exact),
                k=products.gathered(t.q, raw, exact),
                v=products.gathered(do.astype(t.v.dtype), p, exact),
            )
            return _added(form, sums, grad, n, m)

        sums = _over_keys(form, a, n, step, keep._replace(**{name: getattr(own, name) for name in QUERY}))
        mine = {name: getattr(sums, name) for name in QUERY} | {
            "q": _flat(jnp.moveaxis(sums.q, 2, 0)),
            "i": jax.tree.map(_flat, sums.i),
        }
        return sums._replace(**dict.fromkeys(QUERY)), mine

    keep, rows = jax.lax.scan(block, keep, _blocks(form))
    back = {name: getattr(keep, name).transpose(2, 0, 1) for name in TURNED}
    return keep._replace(**{name: jax.tree.map(_lined, rows[name]) for name in QUERY}, **back)


_attention.defvjp(forward, _backward)


class _Tile:
    """One rectangle of scores of all heads, made anew wherever it is needed."""

    def __init__(self, form: Form, t: Sides, n: Array, m: Array, masked: bool):
        self.form = form
        exact = jnp.promote_types(t.q.dtype, jnp.float32)
        raw = products.scores(t.q, _heads_first(t.k), exact)
        self.raw = raw if form.late == 1 else raw * form.late
        self.qi = t.start + n * form.rows + jnp.arange(form.rows, dtype=jnp.int32)
        self.ki = t.begin + m * form.cols + jnp.arange(form.cols, dtype=jnp.int32)
        self.seen = None
        if masked:
            self.seen = sees(form.look, self.qi, self.ki, t.qs, t.ks) & (self.ki - t.begin < form.keys)[None, :]
        t = t._replace(q=None, k=None, v=None, start=None, begin=None, qs=None, ks=None)
        if form.banded:
            count = form.rows + form.cols - 1
            t = t._replace(w=jax.lax.dynamic_slice_in_dim(t.w, _corner(form, n, m), count, 2))
        self.read, self.rest = part(t, varies)

    def hidden(self, s: Array) -> Array:
        """The scores with those that are not seen at minus infinity."""
        return s if self.seen is None else jnp.where(self.seen, s, -jnp.inf)

    def score(self, read: Sides, raw: Array) -> Array:
        """The scheme's own score of this tile."""
        if self.form.banded:
            return raw + jax.vmap(lambda w: toeplitz(w, self.form.rows))(read.w)
        if not self.form.scores:
            return raw
        return self._each(read, lambda p, s, tile: self.form.scheme.score(p, s, tile), raw, raw)

    def extra(self, read: Sides, a: Array) -> Array:
        """What the scheme adds to the weighted values."""
        return self._each(read, lambda p, a, tile: self.form.scheme.extra(p, a, tile), a, self.raw)

    def _each(self, read: Sides, hook: Any, a: Array, raw: Array) -> Array:
        t, form = join(read, self.rest), self.form
        distance = apart(Side(join(t.lags, t.qp), self.qi, None), Side(join(t.lags, t.kp), self.ki, None))
        seen = jnp.ones(a.shape[2:], bool) if self.seen is None else self.seen

        def one(own, head, a, raw, i, j):
            tile = Tile(i, j, distance, raw, form.scale, seen, self.qi, self.ki, head, form.heads)
            return hook(merge(t.layer, own), a, tile)

        heads = jnp.arange(form.heads).reshape(a.shape[:2])
        axes = jax.tree.map(lambda b: 1 if b.shape[1:3] == heads.shape else None, t.i)
        i = jax.tree.map(lambda b, axis: b[:, 0, 0] if axis is None else b, t.i, axes)  # what all heads say alike
        return jax.vmap(jax.vmap(one, (0, 0, 0, 0, axes, None)), (0, 0, 0, 0, axes, 1))(t.own, heads, a, raw, i, t.j)


def _over_keys(form: Form, a: Sides, n: Array, step: Any, state: Any) -> Any:
    """`step` over the blocks of keys that a block of queries may see; the mask is asked only where it cuts a tile."""
    rows, cols, left, right = form.rows, form.cols, form.look.left, form.look.right
    count, first = _up(form.keys, cols) // cols, a.start - a.begin + n * rows
    low, high = jnp.int32(0), jnp.int32(count)
    inner, outer = jnp.int32(0), jnp.int32(form.keys // cols)
    if left is not None:
        low = jnp.clip((first - left) // cols, 0, count)
        inner = -((left - first - rows + 1) // cols)
    if right is not None:
        high = jnp.clip((first + rows - 1 + right) // cols + 1, 0, count)
        outer = jnp.minimum((first + right + 1) // cols, outer)
    if a.qs is not None:
        return jax.lax.fori_loop(low, high, functools.partial(step, masked=True), state)
    inner = jnp.clip(inner, low, jnp.maximum(low, high))
    outer = jnp.clip(outer, inner, jnp.maximum(inner, high))
    if left is not None:
        state = jax.lax.fori_loop(low, inner, functools.partial(step, masked=True), state)
    state = jax.lax.fori_loop(inner, outer, functools.partial(step, masked=False), state)
    if right is not None or form.keys % cols:
        state = jax.lax.fori_loop(outer, high, functools.partial(step, masked=True), state)
    return state


def _added(form: Form, sums: Sides, grad: Sides, n: Array, m: Array) -> Sides:
    """The gradient of one tile, added where it belongs."""

    def put(total, part, axis, at):
        part = part.astype(total.dtype)
        old = jax.lax.dynamic_slice_in_dim(total, at, part.shape[axis], axis)
        return jax.lax.dynamic_update_slice_in_dim(total, old + part, at, axis)

    done = {}
    for name, total in zip(Sides._fields, sums, strict=True):
        add: Any = lambda total, part: total + part.astype(total.dtype)  # noqa: E731
        if name in KEY:
            add = functools.partial(put, axis=0, at=m * form.cols)
        if name in TURNED:
            add = functools.partial(put, axis=2, at=m * form.cols)
        if name == "w":
            add = functools.partial(put, axis=2, at=_corner(form, n, m))
        done[name] = jax.tree.map(add, total, getattr(grad, name))
    return Sides(**done)


def _blocks(form: Form) -> Array:
    """Numbers of the blocks of queries, of 32 bits as indices are."""
    return jnp.arange(_up(form.queries, form.rows) // form.rows, dtype=jnp.int32)


def _corner(form: Form, n: Array, m: Array) -> Array:
    """Where in the band the diagonals of a tile begin."""
    return _up(form.keys, form.cols) - form.cols + n * form.rows - m * form.cols


def _padded(form: Form, a: Sides) -> Sides:
    """Tokens up to whole blocks; masks leave out what was added."""
    pad = lambda block: lambda b: lengthened(b, 0, block)  # noqa: E731
    query = {name: jax.tree.map(pad(form.rows), getattr(a, name)) for name in QUERY}
    key = {name: jax.tree.map(pad(form.cols), getattr(a, name)) for name in KEY}
    return a._replace(**query, **key)


def _cut(a: Sides, names: tuple[str, ...], at: Any, size: int) -> Sides:
    """Some tokens of a side."""
    take = lambda b: jax.lax.dynamic_slice_in_dim(b, at, size)  # noqa: E731
    return a._replace(**{name: jax.tree.map(take, getattr(a, name)) for name in names})


def _queries(form: Form, a: Sides, n: Array) -> Sides:
    """One block of queries, their heads nested, and in front of the tokens for the products: `[G, R, rows, e]`."""
    mine = _cut(a, QUERY, n * form.rows, form.rows)
    return mine._replace(q=jnp.moveaxis(_nested(mine.q, a), 0, 2), i=jax.tree.map(lambda b: _nested(b, a), mine.i))


def _nested(b: Array, a: Sides) -> Array:
    """Query heads, after tokens, under their key heads; what all say alike has 1 in the place of both."""
    alike = b.shape[1] == 1
    return b.reshape(b.shape[0], 1 if alike else a.k.shape[1], -1, *b.shape[2:])


def _flat(b: Array) -> Array:
    """What `_nested` nested."""
    return b.reshape(b.shape[0], -1, *b.shape[3:])


def _heads_first(b: Float[Array, "K G e"]) -> Float[Array, "G K e"]:
    """A tile of keys or values as products take it."""
    return b.swapaxes(0, 1)


def _lined(blocks: Array) -> Array:
    """Blocks of tokens, one after another."""
    return blocks.reshape(-1, *blocks.shape[2:])


def _up(count: int, block: int) -> int:
    """The next multiple of a block."""
    return -(-count // block) * block
