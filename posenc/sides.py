"""The two sides of one sequence's attention: what keys say and store, and what each row of queries makes of it.

Hooks are called here and in `attention.embed`, nowhere else. Keys of grouped queries stay few unless a scheme makes
them differ per query head; then they are repeated before the hook.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Num, PyTree

from posenc.compose import merge
from posenc.scheme import GROUP_AXIS, REPEAT_AXIS, At, Scheme, Tile


class Keys(NamedTuple):
    """The keys of one sequence as queries meet them, and as a cache stores them; heads first."""

    k: Float[Array, "G K e"]
    v: Float[Array, "G K d"]
    said: PyTree


def each_head(scheme: Scheme, heads: PyTree) -> bool:
    """Whether keys differ from query head to query head."""
    return bool(jax.tree.leaves(heads)) and (scheme.contextual or scheme.overrides("key", "value"))


def tell(scheme: Scheme, params: tuple[Any, Any], x: Any, at: At, carry: PyTree) -> tuple[PyTree, PyTree]:
    """What each token is told of itself, and the carry for the tokens to come; per head where keys are."""
    layer, heads = params
    if not each_head(scheme, heads):
        return scheme.locate(layer, x, at, carry)

    def one(own, head, carry):
        return scheme.locate(merge(layer, own), x, at._replace(head=head), carry)

    return jax.vmap(one)(heads, jnp.arange(at.heads), carry)


def start(scheme: Scheme, params: tuple[Any, Any], dims: Any) -> PyTree:
    """The carry before the first token, of the shape that `tell` takes."""
    carry = scheme.carry(dims)
    if not each_head(scheme, params[1]):
        return carry
    return jax.tree.map(lambda a: jnp.broadcast_to(a, (dims.heads, *jnp.shape(a))), carry)


def encode(scheme: Scheme, params: tuple[Any, Any], k: Float[Array, "K G d"], v: Any, told: PyTree, heads: int) -> Keys:
    """The key side: every key and value once, through its hooks."""
    layer, own = params
    k, v = k.swapaxes(0, 1), v.swapaxes(0, 1)

    def one(p, k, v, c):
        k, said = scheme.key(p, k, c)
        return Keys(k, scheme.value(p, v, c), said)

    if not each_head(scheme, own):
        return jax.vmap(lambda k, v: one(layer, k, v, told))(k, v)
    k, v = (jnp.repeat(a, heads // k.shape[0], 0) for a in (k, v))
    return jax.vmap(lambda own, k, v, c: one(merge(layer, own), k, v, c))(own, k, v, told)


def lookup(scheme: Scheme, params: tuple[Any, Any], asked: PyTree, whole: PyTree, rows: Array) -> PyTree:
    """What queries are told where they are rows of a longer sequence of keys."""
    one = lambda asked, whole: scheme.lookup(asked, whole, rows)  # noqa: E731
    return jax.vmap(one)(asked, whole) if each_head(scheme, params[1]) else one(asked, whole)


class Pairs(NamedTuple):
    """What all heads of one sequence share about its pairs of tokens."""

    distance: PyTree[Num[Array, "Q K"]]
    seen: Bool[Array, "Q K"]
    qi: Array
    ki: Array
    scale: float
    heads: int


def mix(
    scheme: Scheme, params: tuple[Any, Any], q: Float[Array, "Q H d"], keys: Keys, told: PyTree, pairs: Pairs
) -> Float[Array, "Q H d"]:
    """The query side: every row of every head, over all keys."""
    layer, own = params
    each = each_head(scheme, own)
    groups = keys.k.shape[0]
    nested = lambda a: a.reshape(groups, pairs.heads // groups, *a.shape[1:])  # noqa: E731

    def one(own, head, q, c, keys):
        return _rows(scheme, merge(layer, own), q, c, keys, head, pairs)

    told_axis = 0 if each else None
    inner = jax.vmap(one, (0, 0, 0, told_axis, None), axis_name=REPEAT_AXIS)
    outer = jax.vmap(inner, (0, 0, 0, told_axis, 0), axis_name=GROUP_AXIS)
    out = outer(
        jax.tree.map(nested, own),
        nested(jnp.arange(pairs.heads)),
        nested(q.swapaxes(0, 1)),
        jax.tree.map(nested, told) if each else told,
        keys,
    )
    return out.reshape(pairs.heads, *out.shape[2:]).swapaxes(0, 1)


def _rows(scheme: Scheme, p: Any, q: Array, c: PyTree, keys: Keys, head: Array, pairs: Pairs) -> Float[Array, "Q d"]:
    exact = jnp.promote_types(q.dtype, jnp.float32)
    q, said = scheme.query(p, q, c)
    raw = jnp.einsum("qd,kd->qk", q, keys.k, preferred_element_type=exact) * pairs.scale
    tile = Tile(said, keys.said, pairs.distance, raw, pairs.scale, pairs.seen, pairs.qi, pairs.ki, head, pairs.heads)
    s = scheme.score(p, raw, tile)
    a = scheme.weigh(p, s, tile) if scheme.overrides("weigh") else softmax(s, pairs.seen)
    o = jnp.einsum("qk,kd->qd", a.astype(keys.v.dtype), keys.v, preferred_element_type=exact)
    if scheme.overrides("extra"):
        o = o + scheme.extra(p, a, tile)
    return scheme.output(p, o.astype(keys.v.dtype), c)


def softmax(s: Float[Array, "Q K"], seen: Bool[Array, "Q K"]) -> Float[Array, "Q K"]:
    """Weights of the seen keys; a row that sees nothing is zero, with zero gradient, and never NaN."""
    s = jnp.where(seen, s, -jnp.inf)
    top = jax.lax.stop_gradient(s.max(-1, keepdims=True, initial=-jnp.inf))
    e = jnp.exp(s - jnp.where(top > -jnp.inf, top, 0.0))
    total = e.sum(-1, keepdims=True)
    return e / jnp.where(total > 0, total, 1.0)
