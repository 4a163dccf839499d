"""The two sides of one sequence's attention: what keys say and store, and what queries ask and receive.

What mixes the two is a kernel's. Keys of grouped queries stay few unless a scheme makes
them differ per query head; then they are repeated before the hook.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from posenc.core.compose import merge
from posenc.core.scheme import At, Scheme


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


def ask(
    scheme: Scheme, params: tuple[Any, Any], q: Float[Array, "Q H d"], told: PyTree
) -> tuple[Float[Array, "H Q e"], PyTree]:
    """The query side before mixing: every query of every head once, through its hook, and what it says, heads first.

    What all heads say alike, since they only repeat what they were told, has 1 in the place of heads: `by_head` reads
    it. A scheme whose score works on positions alone is then computed once and not once for each head.
    """
    layer, own = params
    one = lambda own, q, c: scheme.query(merge(layer, own), q, c)  # noqa: E731
    q = q.swapaxes(0, 1)
    if each_head(scheme, own):
        return jax.vmap(one)(own, q, told)
    form: list[Any] = []

    def probe(own: PyTree, q: Array, c: PyTree) -> None:
        repeated = {id(leaf) for leaf in jax.tree.leaves(c)}
        leaves, tree = jax.tree.flatten(one(own, q, c)[1])
        form[:] = [None if id(leaf) in repeated else 0 for leaf in leaves], tree

    jax.eval_shape(probe, *jax.tree.map(lambda a: a[0], (own, q)), told)
    axes, tree = form
    flat = jax.vmap(lambda *a: _flat(*one(*a)), (0, 0, None), (0, axes))
    asked, said = flat(own, q, told)
    return asked, jax.tree.unflatten(
        tree, [leaf[None] if axis is None else leaf for leaf, axis in zip(said, axes, strict=True)]
    )


def _flat(asked: Array, said: PyTree) -> tuple[Array, list[Array]]:
    return asked, jax.tree.leaves(said)


def by_head(said: PyTree, heads: int) -> tuple[PyTree, PyTree]:
    """What `ask` says as `jax.vmap` over heads takes it: the same without axes of 1, and where its heads are."""
    axes = jax.tree.map(lambda a: 0 if a.shape[0] == heads else None, said)
    return jax.tree.map(lambda a, axis: a[0] if axis is None else a, said, axes), axes


def receive(scheme: Scheme, params: tuple[Any, Any], o: Float[Array, "Q H d"], told: PyTree) -> Float[Array, "Q H d"]:
    """The query side after mixing."""
    if not scheme.overrides("output"):
        return o
    layer, own = params
    one = lambda own, o, c: scheme.output(merge(layer, own), o, c)  # noqa: E731
    return jax.vmap(one, (0, 1, 0 if each_head(scheme, own) else None), 1)(own, o, told)
