"""Ways to compute one attention from encoded tokens: scores, weights, sum, on the whole square or on parts of it.

A kernel runs the hooks `score`, `normalize` and `value_bias` and no other.
"""

from __future__ import annotations

from jaxtyping import Array, Float

from posenc.attention.kernels import blocks, dense, rows, tiled
from posenc.attention.kernels.blocks import pay
from posenc.attention.kernels.dispatch import KERNELS, block, choose, serves
from posenc.attention.kernels.form import Encoded, Form, Pairs, Side, Weighting, count_visible

__all__ = [
    "KERNELS",
    "Encoded",
    "Form",
    "Pairs",
    "Side",
    "Weighting",
    "block",
    "choose",
    "count_visible",
    "mix",
    "mix_mapped",
    "pay",
    "serves",
]


def mix(form: Form, encoded: Encoded) -> Float[Array, "Q H d"]:
    """One sequence's attention by the kernel of its form."""
    if form.kernel == "dense":
        return blocks.squares(form, encoded) if form.in_blocks else dense.mix(form, encoded)
    module = {"tiled": tiled, "rows": rows}[form.kernel]
    return module.mix(form, encoded, block(encoded.q.shape[1], encoded.k.shape[1]))


def mix_mapped(form: Form, encoded: Encoded) -> Float[Array, "Q H d"]:
    """`mix` where `jax.vmap` maps it over sequences and nothing stands between, so that blocks of them are possible."""
    if not form.in_blocks:
        return mix(form, encoded)
    (heads, queries, _), keys = encoded.q.shape, encoded.k.shape[1]
    size = block(queries, keys)
    rows = queries if form.kernel == "dense" else min(size, queries)
    return blocks.sequences(mix, form, encoded, heads * rows * (min(size, keys) if form.kernel == "tiled" else keys))
