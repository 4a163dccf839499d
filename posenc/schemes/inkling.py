"""Inkling: what each query expects at each distance, read from profiles that all heads share."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.core.scheme import Scheme, bias_dtype, check_whole
from posenc.numerics.precision import product


class Inkling(Scheme, name="inkling"):
    """Each query mixes a few learned profiles of distance (Thinking Machines, 2026; `InklingAttention` of transformers
    5.23).

        s_ij = τ_i (q_i · k_j / d + r_i · P[p_i - p_j]),   r = W_h x,
        τ_i = 1 + strength · log max((p_i + 1) / floor, 1)

    r and the profiles have `rank` features; P has a column for each distance from 0 to `extent` - 1 and is the same for
    all heads, and farther keys get 0. Scores are divided by d, not √d, for the authors bring queries and keys to a mean
    square of 1 before, which is left to the model. The temperature τ is for layers that see everything; those with a
    window have none, and as many profiles as the window has keys: `inkling(extent=512, strength=0.0) + window(512)`.
    There is no column for what comes after a query.

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
                raise ValueError(f"The setting {name!r} of 'inkling' is {getattr(self, name)}; it is at least 1.")
        if self.strength < 0:
            raise ValueError(f"The setting 'strength' of 'inkling' is {self.strength}; it is at least 0, for none.")

    def check_positions(self, p, position):
        check_whole(self.name, position)

    def scale(self, d):
        return 1 / d

    def init(self, key, dims):
        return {"profiles": 0.02 * jax.random.normal(key, (self.rank, self.extent))}

    def init_head(self, key, dims):
        return {"w": 0.02 * jax.random.normal(key, (self.rank, dims.width))}

    def locate(self, p, x, at, carry):
        return (at.position, product(x, p["w"].T)), carry

    def query(self, p, q, info):
        position, r = info
        exact = bias_dtype(q)
        share = jnp.maximum((position + 1).astype(exact) / self.floor, 1)
        temperature = (1 + self.strength * jnp.log(share))[:, None]
        expected = product(r, p["profiles"]) * temperature  # [L, extent]
        return (q.astype(exact) * temperature).astype(q.dtype), expected

    def key(self, p, k, info):
        return k, ()

    def score(self, p, s, tile):
        near = (tile.distance >= 0) & (tile.distance < self.extent)
        column = jnp.where(near, tile.distance, 0)
        return s + jnp.where(near, jnp.take_along_axis(tile.query_info, column, 1), 0).astype(s.dtype)
