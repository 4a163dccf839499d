"""Attention in tiles, in memory that grows with the length and not its square: an online softmax, and one gradient.

Scores are made tile by tile, by the scheme's own `score`. They are folded at once into a running maximum, a running sum
and the weighted values (Milakov & Gimelshein, 2018; Rabe & Staats, 2021; Dao et al., 2022). The gradient needs the
output and the logarithm of each row's sum; the backward pass makes each tile again. With P the weights and o the
output, the gradient of the scores is

    dS = P ∘ (dO Vᵀ - D),    D = rowsum(dO ∘ o)

From there it flows through `score` itself, by `jax.vjp` of one tile. So no scheme writes a gradient, and every number
that `score` reads, of the scheme or of a token, receives its own. A tile that the mask empties is not computed.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from posenc.attention.kernels import dense, dropout, layout
from posenc.attention.kernels.band import band, is_banded, toeplitz
from posenc.attention.kernels.form import Encoded, Form, Side, capped, distance, first_distance, placed
from posenc.attention.kernels.layout import QUERY, TURNED, Arrays, Tiling, flat, heads_first, lined
from posenc.attention.kernels.parting import is_sampled_distance, join, part, varies, varying
from posenc.core.compose import merge
from posenc.core.masks import sees
from posenc.core.scheme import Tile
from posenc.numerics.precision import widened
from posenc.numerics.sizes import are_numbers


def mix(form: Form, encoded: Encoded, block: int) -> Float[Array, "Q H d"]:
    """Every row of every head, over all keys, in tiles of `block` queries and as many keys."""
    tiling, arrays = arranged(form, encoded, block)
    out = _attention(tiling, *part(varying(arrays, arrays), varies)).astype(encoded.v.dtype)
    return out[: tiling.queries]


def arranged(form: Form, encoded: Encoded, block: int, parts: int = 1) -> tuple[Tiling, Arrays]:
    """Return what is static and what is not, up to whole tiles.

    The keys may be one of several equal `parts` of the sequence; then the band is of all.
    """
    scheme, (layer, head_params), q = form.scheme, form.params, encoded.q
    exact = widened(q.dtype)
    (heads, queries, _), (groups, count, _) = q.shape, encoded.k.shape
    nested = lambda a: a.reshape(groups, heads // groups, *a.shape[1:])  # noqa: E731
    first = lambda tree: jax.tree.map(lambda a: a.swapaxes(0, 1), tree)  # noqa: E731
    banded = is_banded(form, encoded) and not scheme.overrides("value_bias")
    scale = form.weighting.scale
    late = scale if q.dtype != exact else 1.0
    q = q if q.dtype != exact else q * scale
    rows, cols = (min(block, n) if are_numbers(n) else block for n in (queries, count))
    tiling = Tiling(scheme, form.window, form.weighting, late, heads, queries, count, rows, cols, banded)
    w, start = None, encoded.query.index[0]
    if banded:
        past = (parts - 1) * count + layout.round_up(count, tiling.cols) - 1
        gaps = jnp.arange(past + layout.round_up(queries, tiling.rows)) - past
        gaps = start + jnp.clip(gaps, 1 - parts * count, queries - 1).astype(jnp.int32)
        w = nested(band(form, encoded, gaps, jnp.arange(heads)))
    (lags, qp), (_, kp) = (part(side.position, is_sampled_distance) for side in (encoded.query, encoded.key))
    (k, v), (query_info, key_info) = first((encoded.k, encoded.v)), first((encoded.query_info, encoded.key_info))
    arrays = Arrays(
        layer, jax.tree.map(nested, head_params), lags, w,
        jax.tree.map(nested, form.sinks), encoded.pairs.prefix, encoded.pairs.seed, first(q), k, v,
        query_info, key_info, qp, kp, start, encoded.key.index[0],
        encoded.query.segment, encoded.key.segment, encoded.query.began, encoded.query.unplaced, encoded.key.unplaced,
    )  # fmt: skip
    return tiling, layout.padded(tiling, arrays)


def _output(tiling: Tiling, differentiable: Arrays, rest: Arrays) -> Float[Array, "Q H d"]:
    return forward(tiling, differentiable, rest)[0]


_attention = jax.custom_vjp(_output, nondiff_argnums=(0,))


def forward(tiling: Tiling, differentiable: Arrays, rest: Arrays) -> tuple[Array, tuple]:
    """The output, and what its gradient needs: the logarithm of each row's sum, infinite where nothing is visible."""
    a = join(differentiable, rest)
    o, lse = map(lined, jax.lax.map(functools.partial(_rows, tiling, a), layout.blocks(tiling)))
    if a.sinks is not None:
        new = jnp.where(lse < jnp.inf, jnp.logaddexp(lse, a.sinks.reshape(1, -1).astype(lse.dtype)), jnp.inf)
        o, lse = o * jnp.exp(jnp.where(lse < jnp.inf, lse - new, 0.0))[..., None], new
    return o, (differentiable, rest, o, lse)


def _rows(tiling: Tiling, a: Arrays, n: Array) -> tuple[Array, Array]:
    """The rows of one block of queries: their output, and the logarithm of the sum of their exponentials."""
    rows = layout.queries(tiling, a, n)
    exact = widened(a.q.dtype)
    lead = rows.q.shape[:3]
    first = jnp.zeros((*lead, a.v.shape[-1]), exact), jnp.full(lead, -jnp.inf, exact), jnp.zeros(lead, exact)
    first = varying(first, a)

    def step(m: Array, state: tuple, masked: bool) -> tuple:
        out, top, total = state
        t = layout.keys(tiling, rows, m)
        tile = _Tile(tiling, t, n, m, masked)
        s = tile.hidden(tile.score(tile.read, tile.logits))
        new = jnp.maximum(top, s.max(-1))
        safe = jnp.where(new > -jnp.inf, new, 0.0)
        e, shrink = jnp.exp(s - safe[..., None]), jnp.exp(top - safe)
        kept = tile.kept(e)
        mixed = dense.mixed(kept, heads_first(t.v), exact)
        if tiling.adds:
            mixed = dense.plus(tiling.scheme, mixed, tile.value_bias(tile.read, kept))
        return out * shrink[..., None] + mixed, new, total * shrink + e.sum(-1)

    out, top, total = layout.over_keys(tiling, a, n, step, first)
    sees_any = total > 0
    out = out / jnp.where(sees_any, total, 1.0)[..., None]
    lse = jnp.where(sees_any, jnp.where(sees_any, top, 0.0) + jnp.log(jnp.where(sees_any, total, 1.0)), jnp.inf)
    return flat(jnp.moveaxis(out, 2, 0)), flat(jnp.moveaxis(lse, 2, 0))


def _backward(tiling: Tiling, saved: tuple, do: Array) -> tuple[Arrays, None]:
    return jax.tree.map(lambda g, b: g.astype(b.dtype), gradient(tiling, saved, do), saved[0]), None


def gradient(tiling: Tiling, saved: tuple, do: Array) -> Arrays:
    """The gradient of all that has one, in float32 at least. The rows that were saved may have seen more keys."""
    differentiable, rest, o, lse = saved
    a = join(differentiable, rest)
    exact = lse.dtype
    zero = lambda b: jnp.zeros(b.shape, widened(b.dtype, exact))  # noqa: E731
    zeros = lambda tree: varying(jax.tree.map(zero, tree), a)  # noqa: E731
    transposed = {name: getattr(differentiable, name).transpose(1, 2, 0) for name in TURNED}
    keep = zeros(differentiable._replace(**dict.fromkeys(QUERY), **transposed))  # what all blocks of queries add to
    lines = do.astype(exact), (do.astype(exact) * o).sum(-1), lse

    def block(keep: Arrays, n: Array) -> tuple[Arrays, dict[str, PyTree]]:
        queries, at = layout.queries(tiling, a, n), n * tiling.rows
        of_rows = [layout.nested(jax.lax.dynamic_slice_in_dim(b, at, tiling.rows), a) for b in lines]
        of_rows = [jnp.moveaxis(b, 0, 2) for b in of_rows]
        none = zeros(layout.queries(tiling, differentiable, n))

        def step(m: Array, sums: Arrays, masked: bool) -> Arrays:
            t = layout.keys(tiling, queries, m)
            return layout.added(tiling, sums, _pulled(_Tile(tiling, t, n, m, masked), t, *of_rows), n, m)

        sums = layout.over_keys(tiling, a, n, step, keep._replace(**{name: getattr(none, name) for name in QUERY}))
        of_queries = {name: getattr(sums, name) for name in QUERY} | {
            "q": flat(jnp.moveaxis(sums.q, 2, 0)),
            "query_info": jax.tree.map(flat, sums.query_info),
        }
        return sums._replace(**dict.fromkeys(QUERY)), of_queries

    keep, rows = jax.lax.scan(block, keep, layout.blocks(tiling))
    back = {name: getattr(keep, name).transpose(2, 0, 1) for name in TURNED}
    if a.sinks is not None:  # a key without a value: its dP is zero
        share = jnp.exp(a.sinks.reshape(1, -1).astype(exact) - lse)
        keep = keep._replace(sinks=-(share * lines[1]).sum(0).reshape(a.sinks.shape))
    return keep._replace(**{name: jax.tree.map(lined, rows[name]) for name in QUERY}, **back)


def _pulled(tile: _Tile, t: Arrays, do: Array, mean: Array, lse: Array) -> Arrays:
    """The gradient of all that one tile was made of; `mean` is D, the mean of a row's dP by its weights."""
    tiling, exact = tile.tiling, lse.dtype
    s, pull = jax.vjp(tile.score, tile.read, tile.logits)
    p = jnp.exp(tile.hidden(s) - lse[..., None])
    kept, read_more = tile.kept(p), None
    dp = dense.scores(do.astype(t.v.dtype), heads_first(t.v), exact)
    if tiling.adds:
        more, pull_more = jax.vjp(tile.value_bias, tile.read, kept)
        read_more, dp_more = pull_more(do.astype(more.dtype))
        dp = dp + dp_more
    ds = kept * dp - p * mean[..., None] if tiling.weighting.dropout else p * (dp - mean[..., None])
    read, logits = pull(ds.astype(s.dtype))
    if read_more is not None:
        read = jax.tree.map(jnp.add, read, read_more)
    read = read._replace(v=dense.gathered(do.astype(t.v.dtype), kept, exact))
    if not tile.reads_logits():
        zero = lambda b: varying(jnp.zeros(b.shape, exact), t)  # noqa: E731
        return read._replace(q=zero(t.q), k=zero(t.k.transpose(1, 2, 0)))
    logits = (logits if tiling.late == 1 else logits * tiling.late).astype(t.k.dtype)
    return read._replace(q=dense.mixed(logits, heads_first(t.k), exact), k=dense.gathered(t.q, logits, exact))


_attention.defvjp(forward, _backward)


class _Tile:
    """One rectangle of scores of all heads, made again wherever it is needed."""

    def __init__(self, tiling: Tiling, t: Arrays, n: Array, m: Array, masked: bool):
        self.tiling = tiling
        exact = widened(t.q.dtype)
        logits = dense.scores(t.q, heads_first(t.k), exact)
        self.logits = logits if tiling.late == 1 else logits * tiling.late
        self.qi = t.start + n * tiling.rows + jnp.arange(tiling.rows, dtype=jnp.int32)
        self.ki = t.begin + m * tiling.cols + jnp.arange(tiling.cols, dtype=jnp.int32)
        self.both = placed(Side(None, self.qi, None, None, t.qu), Side(None, self.ki, None, None, t.ku))
        self.visible = None
        if masked:
            apart = first_distance(self._apart(t), self.both) if tiling.window.of_positions else None
            self.visible = (
                sees(tiling.window, self.qi, self.ki, t.qs, t.ks, t.began, t.prefix, apart)
                & (self.ki - t.begin < tiling.keys)[None, :]
            )
        self.seed = t.seed
        beside = ("q", "k", "v", "start", "begin", "qs", "ks", "began", "prefix", "seed", "qu", "ku")
        t = t._replace(**dict.fromkeys(beside))
        if tiling.banded:
            assert t.w is not None
            count = tiling.rows + tiling.cols - 1
            t = t._replace(w=jax.lax.dynamic_slice_in_dim(t.w, layout.corner(tiling, n, m), count, 2))
        self.read, self.rest = part(t, varies)

    def hidden(self, s: Array) -> Array:
        """The scores, minus infinity where a key is not visible."""
        return s if self.visible is None else jnp.where(self.visible, s, -jnp.inf)

    def kept(self, weights: Array) -> Array:
        """The weights without those that are dropped."""
        rate, seed = self.tiling.weighting.dropout, self.seed
        if not rate:
            return weights
        assert seed is not None
        heads = jnp.arange(self.tiling.heads)
        each = jax.vmap(lambda head: dropout.kept(rate, seed, head, self.qi, self.ki))(heads)
        return weights * each.reshape(weights.shape).astype(weights.dtype)

    def score(self, read: Arrays, logits: Array) -> Array:
        """The scheme's own score of this tile, under the cap."""
        s = capped(logits, self.tiling.weighting, "score")
        if self.tiling.banded:
            s = s + jax.vmap(lambda w: toeplitz(w, self.tiling.rows))(read.w)
        elif self.tiling.scores:
            made = self._each(read, self.tiling.scheme.score, s, s)
            s = made if self.both is None else jnp.where(self.both, made, s)
        return capped(s, self.tiling.weighting, "sum")

    def reads_logits(self) -> bool:
        """Tell whether the scores depend on q·k, which a scheme may replace."""
        if self.tiling.banded or not self.tiling.scores:
            return True
        jaxpr = jax.make_jaxpr(self.score)(self.read, self.logits).jaxpr
        read = [*(a for equation in jaxpr.eqns for a in equation.invars), *jaxpr.outvars]
        return any(a is jaxpr.invars[-1] for a in read)

    def value_bias(self, read: Arrays, a: Array) -> Array:
        """Return the scheme's addition to the weighted values."""
        masked = a if self.both is None else jnp.where(self.both, a, 0)
        return self._each(
            read, self.tiling.scheme.value_bias, masked, capped(self.logits, self.tiling.weighting, "score")
        )

    def _apart(self, t: Arrays) -> PyTree:
        """Query position minus key position."""
        return distance(Side(join(t.lags, t.qp), self.qi, None), Side(join(t.lags, t.kp), self.ki, None))

    def _each(self, read: Arrays, hook: Any, a: Array, logits: Array) -> Array:
        """A hook of every head, given its scores or weights."""
        t, tiling = join(read, self.rest), self.tiling
        apart = self._apart(t)
        visible = jnp.ones(a.shape[2:], bool) if self.visible is None else self.visible
        scale = tiling.weighting.scale

        def apply_hook(own, head, a, logits, query_info, key_info):
            tile = Tile(query_info, key_info, apart, logits, scale, visible, self.qi, self.ki, head, tiling.heads)
            return hook(merge(t.layer, own), a, tile)

        heads = jnp.arange(tiling.heads).reshape(a.shape[:2])
        axes = jax.tree.map(lambda b: 1 if b.shape[1:3] == heads.shape else None, t.query_info)
        query_info = jax.tree.map(lambda b, axis: b[:, 0, 0] if axis is None else b, t.query_info, axes)
        each = jax.vmap(jax.vmap(apply_hook, (0, 0, 0, 0, axes, None)), (0, 0, 0, 0, axes, 1))
        return each(t.head_params, heads, a, logits, query_info, t.key_info)
