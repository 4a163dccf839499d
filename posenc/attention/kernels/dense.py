"""Attention over the whole square of scores: the reference, for any scheme, and the fastest where it fits a cache.

Its two products, which tiles use too, are of all heads at once: the query heads of one key head are the rows of one
matrix. Written so, neither product nor its gradient is turned in memory, which costs as much as the product itself.
Matrices of few keys stay apart: there it is the joining of their rows that costs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from posenc.attention.kernels.band import band, is_banded, toeplitz
from posenc.attention.kernels.dropout import kept
from posenc.attention.kernels.form import Encoded, Form, capped, distance, head_axes, placed, visible
from posenc.core.compose import merge
from posenc.core.scheme import GROUP_AXIS, REPEAT_AXIS, Scheme, Tile
from posenc.core.shapes import label
from posenc.numerics.precision import widened
from posenc.numerics.sizes import are_numbers

FEW = 20
"""Keys up to which query heads stay apart: on a processor, 16 tokens then take three quarters of the time."""
MANY = 64
"""Keys from which a processor takes keys and values with tokens last: their gradients then take half the time."""


class Steps(NamedTuple):
    """Every step of one attention, its query heads nested: each key head, and the query heads of it."""

    dot: Float[Array, "G R Q K"]
    """q·k before the scale."""
    logits: Float[Array, "G R Q K"]
    score: Float[Array, "G R Q K"]
    visible: Bool[Array, "Q K"]
    weights: Float[Array, "G R Q K"]
    mixed: Float[Array, "G R Q d"]
    value_bias: Float[Array, "G R Q d"] | None
    """It is None if the scheme has no such hook."""


def mix(form: Form, encoded: Encoded) -> Float[Array, "Q H d"]:
    """Every row of every head, over all keys."""
    return square(form, encoded).swapaxes(0, 1)


def square(form: Form, encoded: Encoded, heads: Int[Array, " H"] | None = None) -> Float[Array, "H Q d"]:
    """The weighted values of whole rows, heads first; of these heads where the tokens are encoded for no others."""
    computed = steps(form, encoded, heads)
    out = computed.mixed if computed.value_bias is None else plus(form.scheme, computed.mixed, computed.value_bias)
    return out.reshape(-1, *out.shape[2:]).astype(encoded.v.dtype)


def plus(scheme: Scheme, mixed: Float[Array, "*rows d"], bias: Float[Array, "*rows d"]) -> Float[Array, "*rows d"]:
    """The weighted values, and what the scheme adds to them."""
    if mixed.shape[-1] != bias.shape[-1]:
        raise ValueError(
            f"The hook 'value_bias' of {label(scheme)} returns {bias.shape[-1]} features, and a value has"
            f" {mixed.shape[-1]}; it must return as many."
        )
    return mixed + bias


def steps(form: Form, encoded: Encoded, heads: Int[Array, " H"] | None = None) -> Steps:
    """Scores, weights and sum, step by step."""
    scheme, (layer, head_params), groups = form.scheme, form.params, encoded.k.shape[0]
    heads = jnp.arange(form.heads) if heads is None else heads
    exact = widened(encoded.q.dtype)
    apart, seen = distance(encoded.query, encoded.key), visible(form, encoded)
    both = placed(encoded.query, encoded.key)
    nested = lambda a: a.reshape(groups, heads.size // groups, *a.shape[1:])  # noqa: E731

    turn = jax.default_backend() == "cpu" and are_numbers(seen.shape[1]) and seen.shape[1] >= MANY
    dot = scores(nested(encoded.q), encoded.k, exact, turn)
    logits, weighting = dot * form.weighting.scale, form.weighting
    banded = is_banded(form, encoded) and are_numbers(*seen.shape)
    bounded = capped(logits, weighting, "score")
    score = bounded + nested(_bias(form, encoded, heads)) if banded else bounded

    def weigh_head(own, head, sink, logits, score, query_info, key_info):
        p = merge(layer, own)
        index = encoded.query.index, encoded.key.index
        tile = Tile(query_info, key_info, apart, logits, weighting.scale, seen, *index, head, form.heads)
        s = score if banded else scheme.score(p, score, tile)
        s = capped(s if both is None else jnp.where(both, s, score), weighting, "sum")
        a = scheme.normalize(p, s, tile) if scheme.overrides("normalize") else _softmax_with(sink, s, seen)
        if weighting.dropout:
            assert encoded.pairs.seed is not None
            a = a * kept(weighting.dropout, encoded.pairs.seed, head, *index).astype(a.dtype)
        masked = a if both is None else jnp.where(both, a, 0)
        return s, a, scheme.value_bias(p, masked, tile) if scheme.overrides("value_bias") else None

    query_info, axes = head_axes(encoded.query_info, heads.size)
    query_info = jax.tree.map(lambda a, axis: a if axis is None else nested(a), query_info, axes)
    inner = jax.vmap(weigh_head, (0, 0, 0, 0, 0, axes, None), axis_name=REPEAT_AXIS)
    outer = jax.vmap(inner, (0, 0, 0, 0, 0, axes, 0), axis_name=GROUP_AXIS)
    own, head, sinks = jax.tree.map(nested, (head_params, heads, form.sinks))
    score, weights, value_bias = outer(own, head, sinks, bounded, score, query_info, encoded.key_info)
    return Steps(dot, logits, score, seen, weights, mixed(weights, encoded.v, exact, turn), value_bias)


def _bias(form: Form, encoded: Encoded, heads: Int[Array, " H"]) -> Float[Array, "H Q K"]:
    """Return the addition of a scheme that reads distances alone to each score, from one number for each difference of
    indices."""
    queries, keys = encoded.query.index.size, encoded.key.index.size
    gaps = encoded.query.index[0] - encoded.key.index[0] + jnp.arange(1 - keys, queries, dtype=jnp.int32)
    return toeplitz(band(form, encoded, gaps, heads), queries)


def _softmax_with(sink: Float[Array, ""] | None, s: Float[Array, "Q K"], seen: Bool[Array, "Q K"]) -> Array:
    """Weights of the seen keys, beside a sink: one more key, of this score and without a value."""
    if sink is None:
        return softmax(s, seen)
    column = jnp.broadcast_to(sink.astype(s.dtype), (s.shape[0], 1))
    sees_any = seen.any(-1, keepdims=True)  # a row that sees nothing stays zero
    return softmax(jnp.concatenate([s, column], -1), jnp.concatenate([seen, sees_any], -1))[:, :-1]


@jax.custom_jvp
def softmax(s: Float[Array, "Q K"], seen: Bool[Array, "Q K"]) -> Float[Array, "Q K"]:
    """Weights of the seen keys; a row that sees nothing is zero, with zero gradient, and never NaN.

    The derivative is written out, P ∘ (dS - rowsum(P ∘ dS)): from the steps of `_weights` it would take twice as long.
    Where P is zero it does not read dS, which may be anything there.
    """
    return _weights(s, seen)


def _weights(s: Float[Array, "Q K"], seen: Bool[Array, "Q K"]) -> Float[Array, "Q K"]:
    s = jnp.where(seen, s, -jnp.inf)
    top, lowest = s.max(-1, keepdims=True, initial=-jnp.inf), (-s).min(-1, keepdims=True, initial=jnp.inf)
    nothing = lowest == jnp.inf  # asked of `top`, XLA would mask s once more, one by one
    e = jnp.exp(s - top)
    return jnp.where(nothing, 0.0, e / e.sum(-1, keepdims=True))


@softmax.defjvp
def _softmax(of: tuple[Array, Array], by: tuple[Array, Any]) -> tuple[Array, Array]:
    (s, seen), (ds, _) = of, by
    p = _weights(s, seen)
    ds = jnp.where(p > 0, ds, 0.0)
    return p, p * (ds - (p * ds).sum(-1, keepdims=True))


def scores(
    q: Float[Array, "G R Q e"], k: Float[Array, "G K e"], exact: Any, turn: bool = False
) -> Float[Array, "G R Q K"]:
    """Every query times every key; with `turn` the product takes keys with tokens last."""
    return _with(q, k, 2, exact, turn)


def mixed(
    weights: Float[Array, "G R Q K"], v: Float[Array, "G K d"], exact: Any, turn: bool = False
) -> Float[Array, "G R Q d"]:
    """Values, mixed by weights; with `turn` the product takes values with tokens last."""
    return _with(weights.astype(v.dtype), v, 1, exact, turn)


def gathered(q: Float[Array, "G R Q e"], weights: Float[Array, "G R Q K"], exact: Any) -> Float[Array, "G e K"]:
    """Rows of q, mixed by the columns of weights: the gradient of keys and of values, tokens last."""
    q, weights = (a.reshape(a.shape[0], -1, a.shape[-1]) for a in (q, weights.astype(q.dtype)))
    return jax.lax.dot_general(q, weights, (((1,), (1,)), ((0,), (0,))), preferred_element_type=exact)


def _with(
    a: Float[Array, "G R Q x"], b: Float[Array, "G K y"], axis: int, exact: Any, turn: bool
) -> Float[Array, "G R Q z"]:
    """The product over the last axis of `a` and this axis of `b`, which takes `b` with tokens last if `turn`.

    Then the gradient of `b` is a product whose smaller factor comes first. XLA would restore the other order, which
    takes twice as long, without a barrier.
    """
    keys = b.shape[1]
    rows = a if are_numbers(keys) and keys <= FEW else a.reshape(a.shape[0], -1, a.shape[-1])
    if turn:
        b, axis = jax.lax.optimization_barrier(b.swapaxes(1, 2)), 3 - axis
    over = ((rows.ndim - 1,), (axis,)), ((0,), (0,))
    return jax.lax.dot_general(rows, b, over, preferred_element_type=exact).reshape(*a.shape[:3], -1)
