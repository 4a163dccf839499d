"""Attention over the whole square of scores: the reference, for any scheme, and the fastest where it fits a cache."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from posenc.attention import sides
from posenc.attention.kernels import products
from posenc.attention.kernels.pairs import Pairs
from posenc.core.compose import merge
from posenc.core.scheme import GROUP_AXIS, REPEAT_AXIS, Scheme, Tile


def mix(
    scheme: Scheme, params: tuple[Any, Any], q: Float[Array, "Q H d"], keys: sides.Keys, told: PyTree, pairs: Pairs
) -> Float[Array, "Q H d"]:
    """Every row of every head, over all keys."""
    asked, said = sides.ask(scheme, params, q, told)
    out = square(scheme, params, asked, said, keys, pairs)
    return sides.receive(scheme, params, out.swapaxes(0, 1), told)


def square(
    scheme: Scheme, params: tuple[Any, Any], q: Float[Array, "H Q e"], said: PyTree, keys: sides.Keys, pairs: Pairs
) -> Float[Array, "H Q d"]:
    """The weighted values of whole rows."""
    (layer, own), groups = params, keys.k.shape[0]
    exact = jnp.promote_types(q.dtype, jnp.float32)
    distance, seen = pairs.distance(), pairs.seen()
    nested = lambda a: a.reshape(groups, pairs.heads // groups, *a.shape[1:])  # noqa: E731

    raw = products.scores(nested(q), keys.k, exact) * pairs.scale

    def one(own, head, raw, said, met):
        p = merge(layer, own)
        index = pairs.query.index, pairs.key.index
        tile = Tile(said, met, distance, raw, pairs.scale, seen, *index, head, pairs.heads)
        s = scheme.score(p, raw, tile)
        a = scheme.normalize(p, s, tile) if scheme.overrides("normalize") else softmax(s, seen)
        return a, scheme.value_bias(p, a, tile) if scheme.overrides("value_bias") else None

    said, axes = sides.by_head(said, pairs.heads)
    said = jax.tree.map(lambda a, axis: a if axis is None else nested(a), said, axes)
    inner = jax.vmap(one, (0, 0, 0, axes, None), axis_name=REPEAT_AXIS)
    outer = jax.vmap(inner, (0, 0, 0, axes, 0), axis_name=GROUP_AXIS)
    own, head = jax.tree.map(nested, (own, jnp.arange(pairs.heads)))
    weights, more = outer(own, head, raw, said, keys.said)
    out = products.mixed(weights, keys.v, exact)
    out = out if more is None else out + more
    return out.reshape(pairs.heads, *out.shape[2:]).astype(keys.v.dtype)


@jax.custom_jvp
def softmax(s: Float[Array, "Q K"], seen: Bool[Array, "Q K"]) -> Float[Array, "Q K"]:
    """Weights of the seen keys; a row that sees nothing is zero, with zero gradient, and never NaN.

    The derivative is written out, P ∘ (dS - rowsum(P ∘ dS)): from the steps of `_weights` it would take twice as long.
    """
    return _weights(s, seen)


def _weights(s: Float[Array, "Q K"], seen: Bool[Array, "Q K"]) -> Float[Array, "Q K"]:
    s = jnp.where(seen, s, -jnp.inf)
    top = s.max(-1, keepdims=True, initial=-jnp.inf)
    e = jnp.exp(s - jnp.where(top > -jnp.inf, top, 0.0))
    total = e.sum(-1, keepdims=True)
    return e / jnp.where(total > 0, total, 1.0)


@softmax.defjvp
def _softmax(of: tuple[Array, Array], by: tuple[Array, Any]) -> tuple[Array, Array]:
    (s, seen), (ds, _) = of, by
    p, ds = _weights(s, seen), jnp.where(seen, ds, 0.0)
    return p, p * (ds - (p * ds).sum(-1, keepdims=True))
