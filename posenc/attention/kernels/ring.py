"""Attention to keys that lie on many devices: each device keeps its queries, and the keys go round (Liu et al., 2023).

Every device folds the keys that it holds into the output o and the logarithm of each row's sum l, of its own queries,
and hands them to its neighbour, until all have met all. Two parts of one row, each normalised alone, make

    l = log(exp l₁ + exp l₂),    o = o₁ exp(l₁ - l) + o₂ exp(l₂ - l)

The backward pass sends the keys round once more, and with them the gradient that they have gathered so far, so that
both come home together. Tiles and their gradients are those of `tiled`.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from posenc.attention import sides
from posenc.attention.kernels import tiled
from posenc.attention.kernels.layout import KEY, Arrays, Form
from posenc.attention.kernels.pairs import Pairs
from posenc.attention.kernels.parting import join, part, varies, varying
from posenc.core.scheme import Scheme

TRAVELS = (*KEY, "begin")
"""What goes round."""
Ring = tuple[str, int]
"""The axis of the mesh, and how many devices are on it."""


def mix(
    scheme: Scheme, params: tuple[Any, Any], q: Array, keys: sides.Keys, told: PyTree, pairs: Pairs, block: int,
    ring: Ring,
) -> Float[Array, "Q H d"]:  # fmt: skip
    """Every row of this device's queries, over the keys of all; to be run inside `jax.shard_map`."""
    form, whole = tiled.arranged(scheme, params, q, keys, told, pairs, block, parts=ring[1])
    if form.banded or not (form.scores or form.adds):  # nobody asks where keys stand, so nobody need pass it on
        whole = whole._replace(**dict.fromkeys(("i", "j", "qp", "kp")))
    out = _attention(form, ring, *part(varying(whole, whole), varies)).astype(keys.v.dtype)
    return sides.receive(scheme, params, out[: form.queries], told)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _attention(form: Form, ring: Ring, some: Arrays, rest: Arrays) -> Float[Array, "Q H d"]:
    return _forward(form, ring, some, rest)[0]


def _forward(form: Form, ring: Ring, some: Arrays, rest: Arrays) -> tuple[Array, tuple]:
    a = join(some, rest)
    exact = jnp.promote_types(a.q.dtype, jnp.float32)
    out, lse = jnp.zeros((*a.q.shape[:2], a.v.shape[-1]), exact), jnp.full(a.q.shape[:2], -jnp.inf, exact)

    def fold(n: Array, state: tuple) -> tuple:
        out, lse, keys = state
        met = _met(form, ring, a, keys)

        def meet():
            more, (*_, top) = tiled.forward(form, *part(met, varies))
            return _folded(out, lse, more, jnp.where(top < jnp.inf, top, -jnp.inf))

        out, lse = jax.lax.cond(_seen(form, met), meet, lambda: (out, lse))
        return out, lse, _passed(keys, ring)

    out, lse, _ = jax.lax.fori_loop(0, ring[1], fold, (*varying((out, lse), a), _keys(a)))
    return out, (some, rest, out, jnp.where(lse > -jnp.inf, lse, jnp.inf))


def _backward(form: Form, ring: Ring, saved: tuple, do: Array) -> tuple[Arrays, None]:
    some, rest, out, lse = saved
    a = join(some, rest)
    zero = lambda b: jnp.zeros(b.shape, jnp.promote_types(b.dtype, lse.dtype))  # noqa: E731
    none = varying(jax.tree.map(zero, some), a)

    def fold(n: Array, state: tuple) -> tuple:
        mine, theirs, keys = state
        met = _met(form, ring, a, keys)
        few, others = part(met, varies)

        def meet():
            grad = tiled.gradient(form, (few, others, out, lse), do)
            if form.banded:
                at = _diagonals(form, ring, met)
                old = jax.lax.dynamic_slice_in_dim(mine.w, at, grad.w.shape[2], 2)
                grad = grad._replace(w=jax.lax.dynamic_update_slice_in_dim(mine.w, old + grad.w, at, 2))
            own = grad._replace(**dict.fromkeys(TRAVELS))
            kept = jax.tree.map(jnp.add, mine._replace(w=None), own._replace(w=None))._replace(w=own.w)
            return kept, jax.tree.map(jnp.add, theirs, {name: getattr(grad, name) for name in KEY})

        mine, theirs = jax.lax.cond(_seen(form, met), meet, lambda: (mine, theirs))
        theirs, keys = _passed((theirs, keys), ring)
        return mine, theirs, keys

    start = none._replace(**dict.fromkeys(TRAVELS)), {name: getattr(none, name) for name in KEY}, _keys(a)
    mine, theirs, _ = jax.lax.fori_loop(0, ring[1], fold, start)
    return jax.tree.map(lambda g, b: g.astype(b.dtype), mine._replace(**theirs), some), None


_attention.defvjp(_forward, _backward)


def _keys(a: Arrays) -> dict[str, PyTree]:
    """What a device passes on."""
    return {name: getattr(a, name) for name in TRAVELS}


def _passed(tree: PyTree, ring: Ring) -> PyTree:
    """What the neighbour before passed on."""
    axis, count = ring
    return jax.lax.ppermute(tree, axis, [(n, (n + 1) % count) for n in range(count)])


def _met(form: Form, ring: Ring, a: Arrays, keys: dict[str, PyTree]) -> Arrays:
    """This device's queries beside some device's keys, and the part of the band that is theirs."""
    met = a._replace(**keys)
    if not form.banded:
        return met
    short = a.w.shape[2] - (ring[1] - 1) * form.keys
    return met._replace(w=jax.lax.dynamic_slice_in_dim(a.w, _diagonals(form, ring, met), short, 2))


def _diagonals(form: Form, ring: Ring, met: Arrays) -> Array:
    """Where in the band of all keys that of these begins."""
    return (ring[1] - 1) * form.keys - met.begin


def _seen(form: Form, met: Arrays) -> Bool[Array, ""]:
    """Whether the window lets any of these queries see any of these keys."""
    left, right, seen = form.look.left, form.look.right, jnp.bool_(True)
    if left is not None:
        seen &= met.begin + form.keys - 1 >= met.start - left
    if right is not None:
        seen &= met.begin <= met.start + form.queries - 1 + right
    return seen


def _folded(o: Array, l: Array, more: Array, top: Array) -> tuple[Array, Array]:  # noqa: E741
    """Two parts of each row as one; minus infinity stands for a part that saw nothing."""
    new = jnp.logaddexp(l, top)
    safe = jnp.where(new > -jnp.inf, new, 0.0)
    return o * jnp.exp(l - safe)[..., None] + more * jnp.exp(top - safe)[..., None], new
