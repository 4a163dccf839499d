"""Sizes of arrays and their bounds; sizes are symbols where `jax.export` makes one program for all of them."""

from __future__ import annotations

import math
import os
from typing import Any

import jax

FAR = 2**30
"""Positions, indices, windows and lengths lie below this, so that the difference of two of them fits into 32 bits."""


def are_numbers(*sizes: Any) -> bool:
    """Tell whether all sizes are numbers; a symbol compares with nothing."""
    return all(isinstance(n, int) for n in sizes)


def round_up(count: Any, block: int) -> Any:
    """`count` tokens, up to whole blocks."""
    return -(-count // block) * block


def memory() -> int:
    """Bytes of one device; those of the machine are shared by all its processors. 0 where neither says."""
    stats = jax.local_devices()[0].memory_stats()
    if stats and "bytes_limit" in stats:
        return stats["bytes_limit"]
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // jax.device_count()
    except (AttributeError, OSError, ValueError):  # this system does not report it
        return 0


def check_memory(what: str, shapes: Any, lower: str, copies: int = 1) -> None:
    """Refuse arrays of these shapes and types that all devices together cannot hold: XLA would end the process.

    `copies` is how many of each there will be, and `lower` what to make smaller.
    """
    arrays = [a for a in jax.tree.leaves(shapes) if are_numbers(*a.shape)]
    need, have = copies * sum(math.prod(a.shape) * a.dtype.itemsize for a in arrays), memory() * jax.device_count()
    if 0 < have < need:
        raise ValueError(f"{what} take {gib(need)}, and this machine has {gib(have)}; lower {lower}.")


def gib(size: float) -> str:
    """A number of bytes for people."""
    return f"{size / 2**30:,.0f} GiB"
