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

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from posenc.attention import sides
from posenc.attention.kernels import layout, products
from posenc.attention.kernels.band import band, toeplitz
from posenc.attention.kernels.layout import QUERY, TURNED, Arrays, Form, flat, heads_first, lined
from posenc.attention.kernels.pairs import Pairs, Side, apart
from posenc.attention.kernels.parting import drawn, join, part, varies, varying
from posenc.core.compose import merge
from posenc.core.masks import sees
from posenc.core.scheme import Scheme, Tile


def mix(
    scheme: Scheme, params: tuple[Any, Any], q: Array, keys: sides.Keys, told: PyTree, pairs: Pairs, block: int
) -> Float[Array, "Q H d"]:
    """Every row of every head, over all keys, in tiles of `block` queries and as many keys."""
    form, whole = arranged(scheme, params, q, keys, told, pairs, block)
    out = _attention(form, *part(varying(whole, whole), varies)).astype(keys.v.dtype)
    return sides.receive(scheme, params, out[: form.queries], told)


def arranged(
    scheme: Scheme, params: tuple[Any, Any], q: Array, keys: sides.Keys, told: PyTree, pairs: Pairs, block: int,
    parts: int = 1,
) -> tuple[Form, Arrays]:  # fmt: skip
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
    banded = by_gap and scheme.reads == "distance" and not scheme.overrides("value_bias")
    late = pairs.scale if asked.dtype != exact else 1.0
    asked = asked if asked.dtype != exact else asked * pairs.scale
    sizes = heads, queries, count, min(block, queries), min(block, count)
    form = Form(scheme, pairs.look, pairs.scale, late, *sizes, banded)
    w, start = None, pairs.query.index[0]
    if banded:
        past = (parts - 1) * count + layout.whole(count, form.cols) - 1
        gaps = jnp.arange(past + layout.whole(queries, form.rows)) - past
        gaps = start + jnp.clip(gaps, 1 - parts * count, queries - 1).astype(jnp.int32)
        w = nested(band(scheme, params, gaps, None if pairs.implied else place, heads, exact))
    (lags, qp), (_, kp) = (part(side.position, drawn) for side in (pairs.query, pairs.key))
    layer, own = params
    whole = Arrays(
        layer, jax.tree.map(nested, own), lags, w, first(asked), *first(keys[:2]), first(said), first(keys.said),
        qp, kp, start, pairs.key.index[0], pairs.query.segment, pairs.key.segment,
    )  # fmt: skip
    return form, layout.padded(form, whole)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attention(form: Form, some: Arrays, rest: Arrays) -> Float[Array, "Q H d"]:
    return forward(form, some, rest)[0]


def forward(form: Form, some: Arrays, rest: Arrays) -> tuple[Array, tuple]:
    """The output, and what its gradient needs: the logarithm of each row's sum, infinite where nothing is seen."""
    a = join(some, rest)
    o, lse = jax.lax.map(functools.partial(_rows, form, a), layout.blocks(form))
    return lined(o), (some, rest, lined(o), lined(lse))


def _rows(form: Form, a: Arrays, n: Array) -> tuple[Array, Array]:
    """The rows of one block of queries: their output, and the logarithm of the sum of their exponentials."""
    mine = layout.queries(form, a, n)
    exact = jnp.promote_types(a.q.dtype, jnp.float32)
    lead = mine.q.shape[:3]
    first = jnp.zeros((*lead, a.v.shape[-1]), exact), jnp.full(lead, -jnp.inf, exact), jnp.zeros(lead, exact)
    first = varying(first, a)

    def step(m: Array, state: tuple, masked: bool) -> tuple:
        out, top, total = state
        t = layout.keys(form, mine, m)
        tile = _Tile(form, t, n, m, masked)
        s = tile.hidden(tile.score(tile.read, tile.logits))
        new = jnp.maximum(top, s.max(-1))
        safe = jnp.where(new > -jnp.inf, new, 0.0)
        e, shrink = jnp.exp(s - safe[..., None]), jnp.exp(top - safe)
        mixed = products.mixed(e, heads_first(t.v), exact)
        if form.adds:
            mixed = mixed + tile.value_bias(tile.read, e)
        return out * shrink[..., None] + mixed, new, total * shrink + e.sum(-1)

    out, top, total = layout.over_keys(form, a, n, step, first)
    some = total > 0
    out = out / jnp.where(some, total, 1.0)[..., None]
    lse = jnp.where(some, jnp.where(some, top, 0.0) + jnp.log(jnp.where(some, total, 1.0)), jnp.inf)
    return flat(jnp.moveaxis(out, 2, 0)), flat(jnp.moveaxis(lse, 2, 0))


def _backward(form: Form, saved: tuple, do: Array) -> tuple[Arrays, None]:
    return jax.tree.map(lambda g, b: g.astype(b.dtype), gradient(form, saved, do), saved[0]), None


def gradient(form: Form, saved: tuple, do: Array) -> Arrays:
    """The gradient of all that has one, in float32 at least. The rows that were saved may have seen more keys."""
    some, rest, o, lse = saved
    a = join(some, rest)
    exact = lse.dtype
    zero = lambda b: jnp.zeros(b.shape, jnp.promote_types(b.dtype, exact))  # noqa: E731
    zeros = lambda tree: varying(jax.tree.map(zero, tree), a)  # noqa: E731
    turned = {name: getattr(some, name).transpose(1, 2, 0) for name in TURNED}
    keep = zeros(some._replace(**dict.fromkeys(QUERY), **turned))  # what all blocks of queries add to
    lines = do.astype(exact), (do.astype(exact) * o).sum(-1), lse

    def block(keep: Arrays, n: Array) -> tuple[Arrays, dict[str, PyTree]]:
        mine, at = layout.queries(form, a, n), n * form.rows
        of_rows = [layout.nested(jax.lax.dynamic_slice_in_dim(b, at, form.rows), a) for b in lines]
        of_rows = [jnp.moveaxis(b, 0, 2) for b in of_rows]
        own = zeros(layout.queries(form, some, n))

        def step(m: Array, sums: Arrays, masked: bool) -> Arrays:
            t = layout.keys(form, mine, m)
            return layout.added(form, sums, _pulled(_Tile(form, t, n, m, masked), t, *of_rows), n, m)

        sums = layout.over_keys(form, a, n, step, keep._replace(**{name: getattr(own, name) for name in QUERY}))
        mine = {name: getattr(sums, name) for name in QUERY} | {
            "q": flat(jnp.moveaxis(sums.q, 2, 0)),
            "i": jax.tree.map(flat, sums.i),
        }
        return sums._replace(**dict.fromkeys(QUERY)), mine

    keep, rows = jax.lax.scan(block, keep, layout.blocks(form))
    back = {name: getattr(keep, name).transpose(2, 0, 1) for name in TURNED}
    return keep._replace(**{name: jax.tree.map(lined, rows[name]) for name in QUERY}, **back)


def _pulled(tile: _Tile, t: Arrays, do: Array, mean: Array, lse: Array) -> Arrays:
    """The gradient of all that one tile was made of; `mean` is D, the mean of a row's dP by its weights."""
    form, exact = tile.form, lse.dtype
    s, pull = jax.vjp(tile.score, tile.read, tile.logits)
    p = jnp.exp(tile.hidden(s) - lse[..., None])
    dp = products.scores(do.astype(t.v.dtype), heads_first(t.v), exact)
    if form.adds:
        more, pull_more = jax.vjp(tile.value_bias, tile.read, p)
        read_more, dp_more = pull_more(do.astype(more.dtype))
        dp = dp + dp_more
    read, raw = pull((p * (dp - mean[..., None])).astype(s.dtype))
    if form.adds:
        read = jax.tree.map(jnp.add, read, read_more)
    raw = (raw if form.late == 1 else raw * form.late).astype(t.k.dtype)
    return read._replace(
        q=products.mixed(raw, heads_first(t.k), exact),
        k=products.gathered(t.q, raw, exact),
        v=products.gathered(do.astype(t.v.dtype), p, exact),
    )


_attention.defvjp(forward, _backward)


class _Tile:
    """One rectangle of scores of all heads, made anew wherever it is needed."""

    def __init__(self, form: Form, t: Arrays, n: Array, m: Array, masked: bool):
        self.form = form
        exact = jnp.promote_types(t.q.dtype, jnp.float32)
        raw = products.scores(t.q, heads_first(t.k), exact)
        self.raw = raw if form.late == 1 else raw * form.late
        self.qi = t.start + n * form.rows + jnp.arange(form.rows, dtype=jnp.int32)
        self.ki = t.begin + m * form.cols + jnp.arange(form.cols, dtype=jnp.int32)
        self.seen = None
        if masked:
            self.seen = sees(form.look, self.qi, self.ki, t.qs, t.ks) & (self.ki - t.begin < form.keys)[None, :]
        t = t._replace(q=None, k=None, v=None, start=None, begin=None, qs=None, ks=None)
        if form.banded:
            count = form.rows + form.cols - 1
            t = t._replace(w=jax.lax.dynamic_slice_in_dim(t.w, layout.corner(form, n, m), count, 2))
        self.read, self.rest = part(t, varies)

    def hidden(self, s: Array) -> Array:
        """The scores with those that are not seen at minus infinity."""
        return s if self.seen is None else jnp.where(self.seen, s, -jnp.inf)

    def score(self, read: Arrays, raw: Array) -> Array:
        """The scheme's own score of this tile."""
        if self.form.banded:
            return raw + jax.vmap(lambda w: toeplitz(w, self.form.rows))(read.w)
        if not self.form.scores:
            return raw
        return self._each(read, self.form.scheme.score, raw, raw)

    def value_bias(self, read: Arrays, a: Array) -> Array:
        """What the scheme adds to the weighted values."""
        return self._each(read, self.form.scheme.value_bias, a, self.raw)

    def _each(self, read: Arrays, hook: Any, a: Array, raw: Array) -> Array:
        """A hook of every head, given its scores or weights."""
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
