"""Which kernel computes an attention: by what the scheme reads and how many scores there are."""

from __future__ import annotations

import math
import os
from typing import Any

import jax
import jax.numpy as jnp

from posenc.belongs import label
from posenc.scheme import Scheme

KERNELS = ("auto", "dense", "tiled", "rows")
CROSSING = {"cpu": 640 * 640}
"""Scores of one head from which tiles beat the whole square; `benchmarks/attention.py` prints where the two cross."""
ELSEWHERE = 1024 * 1024
"""The same on devices that nobody measured: where the square begins to cost memory."""


def serves(scheme: Scheme) -> dict[str, str]:
    """Every kernel, with the reason where it does not serve this scheme, and nothing where it does."""
    tiles = {
        "row": "reads whole rows of scores, which no tile holds; use kernel='rows'",
        "heads": "reads the scores of all heads at once, which no tile holds; use kernel='rows'",
    }
    return {"dense": "", "tiled": tiles.get(scheme.reads, ""), "rows": ""}


def choose(scheme: Scheme, kernel: str, q: Any, keys: int) -> str:
    """The kernel that was asked for, or the best one for these queries, `[..., Q, H, d]`, and so many keys.

    Raises `ValueError` for a kernel that is unknown or cannot serve the scheme, and where its scores are more than the
    memory of all devices.
    """
    if kernel not in KERNELS:
        raise ValueError(f"kernel is {kernel!r}; it is one of {', '.join(map(repr, KERNELS))}.")
    able = serves(scheme)
    if why := able.get(kernel):
        raise ValueError(f"{label(scheme)} {why}, 'dense' or 'auto'.")
    queries = q.shape[-3]
    if kernel == "auto":
        few = queries * keys < CROSSING.get(jax.default_backend(), ELSEWHERE)
        kernel = "dense" if few else "rows" if able["tiled"] else "tiled"
    if kernel == "dense":
        _check_memory(q, keys)
    return kernel


def block(queries: int, keys: int) -> int:
    """Rows and columns of a tile."""
    return 512 if max(queries, keys) >= 2048 else 256


def _check_memory(q: Any, keys: int) -> None:
    """Refuse scores and weights that no memory holds."""
    size = jnp.promote_types(q.dtype, jnp.float32).itemsize
    (*batch, queries, heads, _) = q.shape
    need = 2 * math.prod(batch) * heads * queries * keys * size
    have = memory() * jax.device_count()
    if need > have:
        raise ValueError(
            f"{queries} queries and {keys} keys of {heads} heads and {math.prod(batch)} sequences make scores and"
            f" weights of {need / 2**30:.0f} GiB, and there are {have / 2**30:.0f}; use kernel='auto', or shorter"
            " sequences."
        )


def memory() -> int:
    """Bytes of one device; those of the machine are shared by all its processors."""
    stats = jax.devices()[0].memory_stats()
    if stats and "bytes_limit" in stats:
        return stats["bytes_limit"]
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // jax.device_count()
