"""Layer normalisation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def normalise(x: Float[Array, "... width"], scale: Float[Array, " width"]) -> Float[Array, "... width"]:
    """x over its deviation from its mean, with a scale and no shift (Ba et al., 2016), in float32 at least."""
    exact = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    exact = exact - exact.mean(-1, keepdims=True)
    exact = exact * jax.lax.rsqrt((exact**2).mean(-1, keepdims=True) + 1e-6)
    return (exact * scale.reshape((1,) * (x.ndim - 1) + (-1,))).astype(x.dtype)
