"""The linear map of our models, y = x W, with its gradient written out.

    dx = dy Wᵀ,   dW = Σ over tokens of xᵀ dy

JAX derives the same, but dW in a form that XLA's compiler for processors transposes: a training step of a small model
takes a quarter longer with it (`benchmarks.programs`). Only reverse mode is defined; for forward mode take
`jnp.matmul`.
"""

from __future__ import annotations

import jax
from jaxtyping import Array, Float


@jax.custom_vjp
def linear(x: Float[Array, "*tokens a"], w: Float[Array, "a b"]) -> Float[Array, "*tokens b"]:
    """x W for every token, in the precision of x; the gradient of W is in that of W."""
    return x @ w.astype(x.dtype)


def _forward(x: Array, w: Array) -> tuple[Array, tuple[Array, Array]]:
    return linear(x, w), (x, w)


def _backward(kept: tuple[Array, Array], dy: Array) -> tuple[Array, Array]:
    x, w = kept
    tokens = tuple(range(x.ndim - 1))
    dw = jax.lax.dot_general(x, dy, ((tokens, tokens), ((), ())))
    return dy @ w.astype(dy.dtype).T, dw.astype(w.dtype)


linear.defvjp(_forward, _backward)
