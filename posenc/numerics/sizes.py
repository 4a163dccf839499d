"""Sizes of arrays, which are numbers, or symbols where `jax.export` makes one program for all of them."""

from __future__ import annotations

from typing import Any


def known(*sizes: Any) -> bool:
    """Whether all sizes are numbers and none is a symbol, which compares with nothing."""
    return all(isinstance(n, int) for n in sizes)


def whole(count: Any, block: int) -> Any:
    """`count` tokens, up to whole blocks."""
    return -(-count // block) * block
