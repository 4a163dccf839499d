"""Shared parts of temperatures: queries multiplied by a number each, and the logarithm of the number of visible
keys."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def multiplied(q: Float[Array, "L d"], factor: Float[Array, " L"]) -> Float[Array, "L d"]:
    """Each query times its number, in the type of the numbers, rounded once."""
    return (q.astype(factor.dtype) * factor[:, None]).astype(q.dtype)


def scalable(s: Float[Array, ""], visible: Int[Array, " L"], exact: Any) -> Float[Array, " L"]:
    """s log n, for n visible keys (Nakanishi, 2025, §2); 0 for a query without any, not log 0."""
    return s.astype(exact) * jnp.log(jnp.maximum(visible, 1).astype(exact))


def log_of(name: str, trained: int) -> float:
    """log L; a `ValueError` where it is zero."""
    if trained < 2:
        raise ValueError(f"{name!r} divides by the logarithm of the training length, {trained}; it must be at least 2.")
    return math.log(trained)
