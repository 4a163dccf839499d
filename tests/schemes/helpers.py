"""Black-box helpers for tests of schemes: the bias at given positions, and attention with random tokens."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.through import bias as through_bias

DIMS = posenc.Dims(width=6, heads=4, head=4, trained=16)


def made(text, dims=DIMS, seed=0):
    """A scheme of a name and its parameters."""
    scheme = posenc.bind(posenc.parse(text), dims)
    return scheme, posenc.init(scheme, jax.random.key(seed), dims)


@functools.partial(jax.jit, static_argnums=(0, 1))
def hook(scheme, side, p, x, positions):
    """What "query" or "key" makes of features."""
    index = jnp.arange(len(x), dtype=jnp.int32)
    at = posenc.At(positions, index, jnp.ones_like(index), index + 1, jnp.int32(0), 1)
    return getattr(scheme, side)(p, x, scheme.locate(p, None, at, ())[0])[0]


def bias(scheme, params, positions, key_positions=None, heads=DIMS.heads):
    """The bias, `[H, Q, K]`, for queries and keys at these positions."""
    keys = positions if key_positions is None else key_positions
    where = {"positions": np.asarray(positions), "key_positions": np.asarray(keys)}
    return np.asarray(through_bias(scheme, params, heads, len(positions), len(keys), **where))


def tokens(length, seed=0, dims=DIMS, dtype=np.float32, width=None):
    """Random queries, keys, values and features of one sequence."""
    rng = np.random.default_rng(seed)
    groups = dims.key_heads or dims.heads
    shapes = [(length, dims.heads, dims.head), *[(length, groups, dims.head)] * 2, (length, width or dims.width)]
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def attend(scheme, params, q, k, v, x=None, **arguments):
    """`posenc.attend`, compiled once for its settings."""
    return _attend(scheme, params, q, k, v, x=x, **arguments)


_attend = jax.jit(posenc.attend, static_argnums=0, static_argnames=("mask",))
