"""Inkling: a bias by distance for each query, mixed from profiles that all heads share."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from posenc.core.scheme import Scheme, bias_dtype, check_whole
from posenc.numerics.precision import product


class Inkling(Scheme, name="inkling"):
    """Each query mixes a few learned profiles of distance (Thinking Machines, 2026; `InklingAttention` of transformers
    5.23).

        s_ij = τ_i (q_i · k_j / d + r_i · P[p_i - p_j]),   r = W_h x,
        τ_i = 1 + strength · log max((p_i + 1) / floor, 1)

    r has `rank` features. P has a row for each of them and a column for each distance from 0 to `extent` - 1, and is
    the same for all heads; keys farther away get 0. Scores are divided by d, not √d, since the authors normalise
    queries and keys to a mean square of 1 first, which is left to the model. The temperature τ is for layers without a
    window; layers with one have no temperature, and a column for each key of the window: `inkling(extent=512,
    strength=0.0) + window(512)`. Keys after a query have no column.

    ```bibtex
    @misc{thinkingmachines2026inkling,
      title = {Inkling},
      author = {{Thinking Machines Lab}},
      year = {2026},
      howpublished = {Released model and code, transformers 5.23},
    }
    ```
    """

    rank: int = 16
    extent: int = 1024
    strength: float = 0.1
    floor: int = 128000

    family = "table"
    reads = "content"
    positional = True  # its temperature
    contextual = True
    limits = {
        "bidirectional": "it has no profile for keys that come after the query",
        "cross": "its profile is of distances within one sequence",
    }
    samples = ({"rank": 3, "extent": 5, "strength": 0.5, "floor": 3}, {"extent": 4, "strength": 0.0})

    def validate(self):
        for name in ("rank", "extent", "floor"):
            if getattr(self, name) < 1:
                raise ValueError(f"The setting {name!r} of 'inkling' is {getattr(self, name)}; it must be at least 1.")
        if self.strength < 0:
            raise ValueError(
                f"The setting 'strength' of 'inkling' is {self.strength}; it must be at least 0, which is none."
            )

    def check_positions(self, p, position):
        check_whole(self.name, position)

    def scale(self, d):
        return 1 / d

    def init(self, key, dims):
        return {"profiles": 0.02 * jax.random.normal(key, (self.rank, self.extent))}

    def init_head(self, key, dims):
        return {"w": 0.02 * jax.random.normal(key, (self.rank, dims.width))}

    def locate(self, p, x: Float[Array, "L D"], at, carry):
        return (at.position, product(x, p["w"].T)), carry

    def query(self, p, q, info):
        position, r = info
        exact = bias_dtype(q)
        share = jnp.maximum((position + 1).astype(exact) / self.floor, 1)
        temperature = (1 + self.strength * jnp.log(share))[:, None]
        return (q.astype(exact) * temperature).astype(q.dtype), r * temperature

    def key(self, p, k, info):
        return k, ()

    def score(self, p, s, tile):
        near = (tile.distance >= 0) & (tile.distance < self.extent)
        profiles = p["profiles"].astype(bias_dtype(s))[:, jnp.where(near, tile.distance, 0)]  # [rank, Q, K]
        bias = jnp.einsum("qr,rqk->qk", tile.query_info, profiles, precision="highest")
        return s + jnp.where(near, bias, 0).astype(s.dtype)
