"""Attention to keys that lie on many devices: each device keeps its queries, and the keys go round (Liu et al., 2023).

Every device folds the keys that it holds into the output o and the logarithm of each row's sum l, of its own queries,
and hands them to its neighbour, until all have met all. Two parts of one row, each normalised alone, make

    l = log(exp l₁ + exp l₂),    o = o₁ exp(l₁ - l) + o₂ exp(l₂ - l)

The backward pass sends the keys round once more, and with them the gradient that they have gathered so far, so that
both come home together. Tiles and their gradients are those of `tiled`.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from posenc.attention.kernels import tiled
from posenc.attention.kernels.form import Encoded, Form
from posenc.attention.kernels.layout import KEY, Arrays, Tiling
from posenc.attention.kernels.parting import join, part, varies, varying
from posenc.numerics.precision import widened

TRAVELS = (*KEY, "begin")
"""Arrays sent from device to device."""
Ring = tuple[str, int]
"""The axis of the mesh, and how many devices are on it."""


def mix(form: Form, encoded: Encoded, block: int, ring: Ring) -> Float[Array, "Q H d"]:
    """Every row of this device's queries, over the keys of all; to be run inside `jax.shard_map`."""
    tiling, arrays = tiled.arranged(form, encoded, block, parts=ring[1])
    if tiling.banded or not (tiling.scores or tiling.adds):  # no hook reads where keys stand: it need not travel
        unread = ("query_info", "key_info", *(() if tiling.window.of_positions else ("qp", "kp")))
        arrays = arrays._replace(**dict.fromkeys(unread))
    out = _attention(tiling, ring, *part(varying(arrays, arrays), varies)).astype(encoded.v.dtype)
    return out[: tiling.queries]


def _output(tiling: Tiling, ring: Ring, differentiable: Arrays, rest: Arrays) -> Float[Array, "Q H d"]:
    return _forward(tiling, ring, differentiable, rest)[0]


_attention = jax.custom_vjp(_output, nondiff_argnums=(0, 1))


def _forward(tiling: Tiling, ring: Ring, differentiable: Arrays, rest: Arrays) -> tuple[Array, tuple]:
    a = join(differentiable, rest)
    exact = widened(a.q.dtype)
    out, lse = jnp.zeros((*a.q.shape[:2], a.v.shape[-1]), exact), jnp.full(a.q.shape[:2], -jnp.inf, exact)

    def fold(n: Array, state: tuple) -> tuple:
        out, lse, keys = state
        met = _met(tiling, ring, a, keys)

        def meet():
            more, (*_, top) = tiled.forward(tiling, *part(met, varies))
            return _folded(out, lse, more, jnp.where(top < jnp.inf, top, -jnp.inf))

        out, lse = jax.lax.cond(_visible(tiling, met), meet, lambda: (out, lse))
        return out, lse, _passed(keys, ring)

    out, lse, _ = jax.lax.fori_loop(0, ring[1], fold, (*varying((out, lse), a), _keys(a)))
    return out, (differentiable, rest, out, jnp.where(lse > -jnp.inf, lse, jnp.inf))


def _backward(tiling: Tiling, ring: Ring, saved: tuple, do: Array) -> tuple[Arrays, None]:
    differentiable, rest, out, lse = saved
    a = join(differentiable, rest)
    zero = lambda b: jnp.zeros(b.shape, widened(b.dtype, lse.dtype))  # noqa: E731
    none = varying(jax.tree.map(zero, differentiable), a)

    def fold(n: Array, state: tuple) -> tuple:
        ours, theirs, keys = state
        met = _met(tiling, ring, a, keys)
        few, others = part(met, varies)

        def meet():
            grad = tiled.gradient(tiling, (few, others, out, lse), do)
            if tiling.banded:
                assert grad.w is not None
                at = _diagonals(tiling, ring, met)
                old = jax.lax.dynamic_slice_in_dim(ours.w, at, grad.w.shape[2], 2)
                grad = grad._replace(w=jax.lax.dynamic_update_slice_in_dim(ours.w, old + grad.w, at, 2))
            rest_of = grad._replace(**dict.fromkeys(TRAVELS))
            kept = jax.tree.map(jnp.add, ours._replace(w=None), rest_of._replace(w=None))._replace(w=rest_of.w)
            return kept, jax.tree.map(jnp.add, theirs, {name: getattr(grad, name) for name in KEY})

        ours, theirs = jax.lax.cond(_visible(tiling, met), meet, lambda: (ours, theirs))
        theirs, keys = _passed((theirs, keys), ring)
        return ours, theirs, keys

    start = none._replace(**dict.fromkeys(TRAVELS)), {name: getattr(none, name) for name in KEY}, _keys(a)
    ours, theirs, _ = jax.lax.fori_loop(0, ring[1], fold, start)
    return jax.tree.map(lambda g, b: g.astype(b.dtype), ours._replace(**theirs), differentiable), None


_attention.defvjp(_forward, _backward)


def _keys(a: Arrays) -> dict[str, PyTree]:
    """Return what a device passes on."""
    return {name: getattr(a, name) for name in TRAVELS}


def _passed(tree: PyTree, ring: Ring) -> PyTree:
    """Return what the neighbour before passed on."""
    axis, count = ring
    return jax.lax.ppermute(tree, axis, [(n, (n + 1) % count) for n in range(count)])


def _met(tiling: Tiling, ring: Ring, a: Arrays, keys: dict[str, PyTree]) -> Arrays:
    """This device's queries beside some device's keys, and the part of the band that is theirs."""
    met = a._replace(**keys)
    if not tiling.banded:
        return met
    assert a.w is not None
    short = a.w.shape[2] - (ring[1] - 1) * tiling.keys
    return met._replace(w=jax.lax.dynamic_slice_in_dim(a.w, _diagonals(tiling, ring, met), short, 2))


def _diagonals(tiling: Tiling, ring: Ring, met: Arrays) -> Array:
    """Return the first diagonal of these keys in the band of all keys."""
    return (ring[1] - 1) * tiling.keys - met.begin


def _visible(tiling: Tiling, met: Arrays) -> Bool[Array, ""]:
    """Tell whether the window lets any of these queries see any of these keys."""
    left, right, visible = tiling.window.left, tiling.window.right, jnp.bool_(True)
    if left is not None:
        visible &= met.begin + tiling.keys - 1 >= met.start - left
    if right is not None:
        visible &= met.begin <= met.start + tiling.queries - 1 + right
    return visible


def _folded(o: Array, l: Array, more: Array, top: Array) -> tuple[Array, Array]:  # noqa: E741
    """Two parts of each row as one; minus infinity stands for a part that saw nothing."""
    new = jnp.logaddexp(l, top)
    safe = jnp.where(new > -jnp.inf, new, 0.0)
    return o * jnp.exp(l - safe)[..., None] + more * jnp.exp(top - safe)[..., None], new
