"""Shaw: a learned vector for each clipped distance, on keys and values."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Num

from posenc.core.scheme import Scheme, check_whole
from posenc.numerics.precision import product


class Shaw(Scheme, name="shaw"):
    """A learned vector for each distance up to a reach, added to keys and values (Shaw et al., 2018, §3).

        s_ij = q_i · (k_j + a^K_r) / √d,   o_i = Σ_j a_ij (v_j + a^V_r),   r = clip(p_j - p_i, -reach, reach)

    As in the paper's base model each layer and head has its own vectors; its large model and the authors' code share
    them among the heads of a layer, which is `shared=True`. The paper finds that vectors on keys suffice
    (`values=False`). Vectors start as Glorot-uniform tables, as in the authors' code. Beyond the reach all distances of
    one direction share a vector.

    ```bibtex
    @inproceedings{shaw2018self,
      title = {Self-Attention with Relative Position Representations},
      author = {Shaw, Peter and Uszkoreit, Jakob and Vaswani, Ashish},
      booktitle = {Proceedings of the Conference of the North American Chapter of the Association for Computational
                   Linguistics: Human Language Technologies},
      year = {2018},
      eprint = {1803.02155},
    }
    ```
    """

    reach: int = 16
    values: bool = True
    """True if values have vectors too."""
    shared: bool = False
    """True if the heads of a layer share their vectors."""

    family = "table"
    extrapolates = "some: distances beyond the reach are alike"
    reads = "content"
    samples = ({"reach": 3, "shared": True}, {"reach": 1, "values": False})

    def validate(self):
        if self.reach < 0:
            raise ValueError(f"'shaw' has reach={self.reach}; it must be a distance of at least 0.")

    def check_positions(self, p, position):
        check_whole("shaw", position)

    def overrides(self, *hooks):
        return Scheme.overrides(self, *(h for h in hooks if h != "value_bias" or self.values))

    def init(self, key, dims):
        return self._tables(key, dims) if self.shared else {}

    def init_head(self, key, dims):
        return {} if self.shared else self._tables(key, dims)

    def _tables(self, key, dims):
        shape = (2 * self.reach + 1, dims.head)
        names = ("key", "value") if self.values else ("key",)
        glorot = jax.nn.initializers.glorot_uniform()
        return {name: glorot(k, shape) for name, k in zip(names, jax.random.split(key, len(names)), strict=True)}

    def query(self, p, q, info):
        return q, product(q, p["key"].T)  # its score of every clipped distance

    def score(self, p, s, tile):
        by_distance = (tile.query_info * tile.scale).astype(s.dtype)
        return s + jnp.take_along_axis(by_distance, self._clipped(tile.distance), 1)

    def value_bias(self, p, a, tile):
        r = self._clipped(tile.distance)
        rows = jnp.arange(r.shape[0])[:, None]
        weight = jnp.zeros((r.shape[0], 2 * self.reach + 1), a.dtype).at[rows, r].add(a)  # of each clipped distance
        return weight @ p["value"].astype(a.dtype)

    def _clipped(self, distance: Num[Array, "Q K"]) -> Int[Array, "Q K"]:
        """The row of each pair: keys before the query first, as in the authors' tables."""
        return self.reach - jnp.clip(distance, -self.reach, self.reach)
