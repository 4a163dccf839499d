"""Attention over the whole square of scores: the reference, for any scheme, and the fastest where it fits a cache."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from posenc import sides
from posenc.compose import merge
from posenc.kernels.pairs import Pairs
from posenc.scheme import GROUP_AXIS, REPEAT_AXIS, Scheme, Tile


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

    def one(own, head, q, said, keys):
        p = merge(layer, own)
        raw = jnp.einsum("qd,kd->qk", q, keys.k, preferred_element_type=exact) * pairs.scale
        index = pairs.query.index, pairs.key.index
        tile = Tile(said, keys.said, distance, raw, pairs.scale, seen, *index, head, pairs.heads)
        s = scheme.score(p, raw, tile)
        a = scheme.weigh(p, s, tile) if scheme.overrides("weigh") else softmax(s, seen)
        o = jnp.einsum("qk,kd->qd", a.astype(keys.v.dtype), keys.v, preferred_element_type=exact)
        if scheme.overrides("extra"):
            o = o + scheme.extra(p, a, tile)
        return o.astype(keys.v.dtype)

    inner = jax.vmap(one, (0, 0, 0, 0, None), axis_name=REPEAT_AXIS)
    outer = jax.vmap(inner, axis_name=GROUP_AXIS)
    out = outer(*jax.tree.map(nested, (own, jnp.arange(pairs.heads), q, said)), keys)
    return out.reshape(pairs.heads, *out.shape[2:])


def softmax(s: Float[Array, "Q K"], seen: Bool[Array, "Q K"]) -> Float[Array, "Q K"]:
    """Weights of the seen keys; a row that sees nothing is zero, with zero gradient, and never NaN."""
    s = jnp.where(seen, s, -jnp.inf)
    top = jax.lax.stop_gradient(s.max(-1, keepdims=True, initial=-jnp.inf))
    e = jnp.exp(s - jnp.where(top > -jnp.inf, top, 0.0))
    total = e.sum(-1, keepdims=True)
    return e / jnp.where(total > 0, total, 1.0)
