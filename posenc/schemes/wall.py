"""Wall: a forget gate for each feature of a head."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics import segment_scans
from posenc.numerics.decay import decayed
from posenc.numerics.precision import product, widened


class Wall(Scheme, name="wall"):
    """A forget gate for each token, head and feature, by which the products of queries and keys fade feature by feature
    (Pai et al., 2026, "Wall attention").

        s_ij = Σ_n q_in k_jn exp(P_in - P_jn) / √d,   P_i = Σ_{l ≤ i} log σ(W_h x_l + b_h)

    The key's own gate is left out, so a token's score with itself is unchanged. b starts at 8, where a gate is 0.9997,
    and W near 0. Gates equal in all features multiply the product; FoX's gate adds to the score. The scalar gate of the
    authors is FoX's: `wall + fox`. Sums restart with each document, skip padding and are kept in float32; their
    differences are taken before the exponential, by blocks of queries with an anchor each (`numerics.decay`), so that
    nothing overflows. Released kernels work in base 2 with the same gates.

    A cache holds each key twice, with its sums beside it. It is causal only: keys after the query would grow.

    ```bibtex
    @misc{pai2026wall,
      title = {Wall Attention: Length Generalization With Diagonal Gates},
      author = {Pai, Dhruv and Averbuch, Timor and Zhang, Ashley and Keigwin, Ben and Dewulf, Alec},
      year = {2026},
      howpublished = {Tilde Research, https://blog.tilderesearch.com/blog/wall-attn},
    }
    ```
    """

    family = "context"
    extrapolates = "from 4,000 tokens to 200,000 (Pai et al., 2026)"
    reads = "content"
    contextual = True
    precedence = "first"
    limits = {
        "bidirectional": "forgetting runs from a key to a later query",
        "cross": "forgetting runs along one sequence",
    }

    def init_head(self, key, dims):
        return {"w": 0.02 * jax.random.normal(key, (dims.head, dims.width)), "b": jnp.full(dims.head, 8.0, jnp.float32)}

    def carry(self, dims):
        return segment_scans.start(dims.head)

    def locate(self, p, x: Float[Array, "L D"], at, carry):
        exact = widened(x.dtype)
        gates = jax.nn.log_sigmoid(product(x, p["w"].T) + p["b"].astype(exact)[None])
        return segment_scans.total(gates, at.segment, carry)

    def query(self, p, q, info):
        return q, (q.astype(bias_dtype(q)), info)

    def key(self, p, k, info):
        return k, (k.astype(bias_dtype(k)), info)

    def score(self, p, s, tile):
        (q, query_sums), (k, key_sums) = tile.query_info, tile.key_info
        return tile.scale * decayed(q, k, query_sums, key_sums, tile.qi, tile.ki)
