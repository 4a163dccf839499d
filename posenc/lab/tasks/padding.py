"""Numbers rounded up to few, and arrays padded to these, so that tasks that differ by a little share their programs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array


def few(n: int) -> int:
    """One of few numbers of symbols or classes, at least n: 16, 32, or a multiple of 64."""
    return next((m for m in (16, 32) if n <= m), -(-n // 64) * 64)


def rounded(tokens: int) -> int:
    """A length that is at least this one: a multiple of 4, or one above.

    Tasks differ by a slot or two, and then have one program; a multiple of 4 is left as it is, since a step of one
    token more takes a tenth longer.
    """
    return tokens if tokens % 4 == 0 else -(-(tokens - 1) // 4) * 4 + 1


def lengthened(given: Any, most: int | None = None) -> Any:
    """Arrays `[..., tokens]` with zeros at the end, up to `rounded`, or up to `most` if that is less."""

    def one(a: Array) -> Array:
        tokens = a.shape[-1]
        more = (rounded(tokens) if most is None else min(rounded(tokens), most)) - tokens
        return jnp.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, max(more, 0))])

    return jax.tree.map(one, given)
