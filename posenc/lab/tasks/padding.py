"""Numbers rounded up to few, and arrays padded to these, so that tasks that differ by a little share their programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array


def bucket_classes(n: int) -> int:
    """One of few numbers of symbols or classes, at least n: 16, 32, or a multiple of 64."""
    return next((m for m in (16, 32) if n <= m), -(-n // 64) * 64)


def round_length(tokens: int) -> int:
    """A length that is at least this one, and one above a multiple of 4: tasks differ by a slot or two, and then have
    one program."""
    return -(-(tokens - 1) // 4) * 4 + 1


def round_longest(tokens: int) -> int:
    """The same for the longest batches of a run, where a multiple of 4 is left as it is up to 32: there a token more
    costs more of a step than one more program saves."""
    return tokens if tokens % 4 == 0 and tokens <= 32 else round_length(tokens)


def pad_tokens(arrays: Any, to: Callable[[int], int] = round_length) -> Any:
    """Arrays `[..., tokens]` with zeros at the end, up to what `to` makes of their length."""

    def pad(a: Array) -> Array:
        return jnp.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, to(a.shape[-1]) - a.shape[-1])])

    return jax.tree.map(pad, arrays)
