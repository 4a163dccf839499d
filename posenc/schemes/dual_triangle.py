"""Dual triangle: one half of each head's features scores the past, the other the future."""

from __future__ import annotations

import jax.numpy as jnp

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics.precision import product


class DualTriangle(Scheme, name="dual_triangle"):
    """One half of a head's features scores keys up to the query, the other keys from it on, so that an encoder sees
    order without positions in its features (Hallee & Gleghorn, 2026).

        s_ij = ([p_j ≤ p_i] q_i[: d/2] · k_j[: d/2] + [p_j ≥ p_i] q_i[d/2 :] · k_j[d/2 :]) / √d

    Both score the token itself. Order is that of positions. It is made for encoders; under a causal mask the second
    half scores the token itself alone. Rotations stand before it: `rope + dual_triangle` in `layout="interleaved"`
    turns pairs within each half. Written from the paper's description; its code was not in reach.

    ```bibtex
    @misc{hallee2026dual,
      title = {Dual Triangle Attention: Effective Bidirectional Attention Without Positional Embeddings},
      author = {Hallee, Logan and Gleghorn, Jason P.},
      year = {2026},
      eprint = {2604.18603},
    }
    ```
    """

    family = "context"
    extrapolates = "best among those compared, with rope (Hallee & Gleghorn, 2026)"
    reads = "content"
    precedence = "last"
    products = True

    def bind(self, dims):
        _half(dims.head)
        return self

    def query(self, p, q, info):
        half = _half(q.shape[-1])
        return q[:, :half], q[:, half:].astype(bias_dtype(q))

    def key(self, p, k, info):
        return self.query(p, k, info)

    def score(self, p, s, tile):
        future = product(tile.query_info, tile.key_info.T) * tile.scale
        past = jnp.where(tile.distance >= 0, tile.logits, 0)
        return s - tile.logits + past + jnp.where(tile.distance <= 0, future, 0).astype(s.dtype)


def _half(head: int) -> int:
    if head % 2:
        raise ValueError(
            f"'dual_triangle' halves the features of a head, which has {head}; take {head - 1 or 2} or {head + 1}."
        )
    return head // 2
