"""Slopes of heads: a geometric series, one number for each head (Press et al., 2022, §3)."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def slope(head: Int[Array, ...], heads: int) -> Float[Array, ...]:
    """The slope of a head, counted from 0 (Press et al., 2022, §3; the authors' `get_slopes`)."""
    whole = 1 << (heads.bit_length() - 1)
    octave = jnp.where(head < whole, head + 1, head - whole + 0.5) * 8 / whole
    return 2.0**-octave
