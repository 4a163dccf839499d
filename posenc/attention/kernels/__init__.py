"""Ways to compute one attention: the same hooks, on the whole square of scores or on parts of it."""

from __future__ import annotations

from typing import Any

from jaxtyping import Array, Float, PyTree

from posenc.attention.kernels import dense, rows, tiled
from posenc.attention.kernels.dispatch import KERNELS, block, choose, serves
from posenc.attention.kernels.pairs import Pairs, Side, visible
from posenc.attention.sides import Keys

__all__ = ["KERNELS", "Pairs", "Side", "block", "choose", "mix", "serves", "visible"]


def mix(
    kernel: str, scheme: Any, params: Any, q: Array, keys: Keys, told: PyTree, pairs: Pairs
) -> Float[Array, "Q H d"]:
    """One sequence's attention by the kernel that was chosen."""
    if kernel == "dense":
        return dense.mix(scheme, params, q, keys, told, pairs)
    of = {"tiled": tiled, "rows": rows}[kernel]
    return of.mix(scheme, params, q, keys, told, pairs, block(q.shape[0], keys.k.shape[1]))
