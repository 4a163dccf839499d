"""Matrix products in full float32 precision on every device.

By default an H100 rounds the factors of a float32 product to 10 bits and a TPU to 7. That is enough for features, but
not for positions and angles, for gates that add up, and for biases added to scores.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def widened(dtype: Any, least: Any = jnp.float32) -> Any:
    """A type that holds both, float32 at least; strict promotion, which refuses to name one, does not matter here."""
    with jax.numpy_dtype_promotion("standard"):
        return jnp.promote_types(dtype, least)


def product(a: Float[Array, ...], b: Float[Array, ...]) -> Float[Array, ...]:
    """The matrix product, in the type of `a` and float32 at least, with all digits on every device."""
    exact = widened(a.dtype)
    return jnp.matmul(a.astype(exact), b.astype(exact), precision="highest")
