"""Choice of the kernel that computes an attention: by what the scheme reads and how many scores there are."""

from __future__ import annotations

import math
from typing import Any

import jax

from posenc.core.scheme import Scheme
from posenc.core.shapes import label
from posenc.numerics.precision import widened
from posenc.numerics.sizes import are_numbers, memory

KERNELS = ("dense", "tiled", "rows")
CROSSING = {"cpu": 640 * 640}
"""Scores of one head from which tiles beat the whole square; `benchmarks/attention.py` prints where the two cross."""
ELSEWHERE = 1024 * 1024
"""The limit on devices that were not measured, where the square begins to cost memory."""


def serves(scheme: Scheme) -> dict[str, str]:
    """Every kernel, with the reason where it does not serve this scheme, and nothing where it does."""
    beyond = {
        "row": "reads whole rows of scores, which no tile holds",
        "heads": "reads the scores of all heads at once, which no tile holds",
    }
    return {"dense": "", "tiled": beyond.get(scheme.reads, ""), "rows": ""}


def choose(scheme: Scheme, kernel: str, q: Any, keys: int, listed: bool = False) -> str:
    """The requested kernel, or the best one for these queries, `[..., Q, H, d]`, and this number of keys.

    `listed` says that the mask is an array. A program that `jax.export` makes for any length is dense unless another
    kernel is requested.

    Raises `ValueError` for a kernel that is unknown or cannot serve the scheme, and where its scores are more than the
    memory of all devices.
    """
    if kernel not in ("auto", *KERNELS):
        raise ValueError(f"kernel is {kernel!r}; it is one of {', '.join(map(repr, ('auto', *KERNELS)))}.")
    able = serves(scheme)
    if why := able.get(kernel):
        raise ValueError(f"{label(scheme)} {why}; use kernel='rows', 'dense' or 'auto'.")
    if listed and kernel == "tiled":
        raise ValueError(
            "An array for the mask is as large as the square that tiles avoid; pass segments, which cover packing in"
            " all kernels, or use kernel='rows' or 'dense'."
        )
    queries = q.shape[-3]
    if kernel == "auto":
        few = not are_numbers(queries, keys) or queries * keys < CROSSING.get(jax.default_backend(), ELSEWHERE)
        kernel = "dense" if few else "rows" if able["tiled"] or listed else "tiled"
    if kernel == "dense":
        _check_memory(q, keys)
    return kernel


def block(queries: int, keys: int) -> int:
    """Rows and columns of a tile."""
    return 512 if are_numbers(queries, keys) and max(queries, keys) >= 2048 else 256


def _check_memory(q: Any, keys: int) -> None:
    """Refuse scores and weights that no memory holds."""
    size = widened(q.dtype).itemsize
    (*lead, queries, heads, _) = q.shape
    batch = math.prod(lead)
    if not are_numbers(batch, queries, keys):
        return
    need, have = 2 * batch * heads * queries * keys * size, memory() * jax.device_count()
    if 0 < have < need:
        raise ValueError(
            f"{queries} queries and {keys} keys of {heads} heads and {batch} sequences make scores and"
            f" weights of {need / 2**30:.0f} GiB, and there are {have / 2**30:.0f}; use kernel='auto', or shorter"
            " sequences."
        )
