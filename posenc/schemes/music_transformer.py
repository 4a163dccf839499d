"""Music Transformer: a learned vector for every distance within a table, and nothing beyond it."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Num

from posenc.core.scheme import Scheme, bound_setting, by_settings, check_whole
from posenc.numerics.precision import product


class MusicTransformer(Scheme, name="music_transformer"):
    """A learned vector for every distance, scored by the query; distances beyond the table add nothing (Huang et al.,
    2019, §3.4).

        s_ij = q_i · (k_j + e_r) / √d,   r = p_i - p_j,   0 ≤ r < reach, or |r| < reach;   e_r = 0 elsewhere

    Unlike Shaw's, distances are not clipped: beyond the table there is no vector. The table has a row for each distance
    in training unless `reach` is set; a bidirectional one has `2 reach - 1` rows, for keys on both sides. Each head has
    its own vectors. `shared` is the authors' option to share them within a layer, and `values` adds vectors to values
    too. The first row is the farthest past, as in their tables, and rows start as N(0, 1 / d). The paper computes the
    term by skewing q eᵀ, which needs consecutive positions; here each pair reads its own entry, so any positions work.

    ```bibtex
    @inproceedings{huang2019music,
      title = {Music Transformer: Generating Music with Long-Term Structure},
      author = {Huang, Cheng-Zhi Anna and Vaswani, Ashish and Uszkoreit, Jakob and Simon, Ian and Hawthorne, Curtis and
                Shazeer, Noam and Dai, Andrew M. and Hoffman, Matthew D. and Dinculescu, Monica and Eck, Douglas},
      booktitle = {International Conference on Learning Representations},
      year = {2019},
      eprint = {1809.04281},
    }
    ```
    """

    reach: int | None = None
    """The first distance without a vector; the training length, unless set."""
    values: bool = False
    shared: bool = False
    bidirectional: bool | None = None
    """True if keys after the query have vectors; True for models that are not causal, unless set."""

    family = "table"
    extrapolates = "not: distances beyond the table add nothing"
    reads = "content"
    limits = by_settings(
        lambda self: (
            {"bidirectional": "its vectors are for keys before the query"} if self.bidirectional is False else {}
        )
    )
    samples = ({"reach": 3, "values": True, "shared": True}, {"reach": 4, "bidirectional": True, "values": True})

    def validate(self):
        if self.reach is not None and self.reach < 1:
            raise ValueError(f"'music_transformer' has reach={self.reach}; it must be a distance of at least 1.")

    def bind(self, dims):
        reach = dims.trained if self.reach is None else self.reach
        bidirectional = not dims.causal if self.bidirectional is None else self.bidirectional
        return dataclasses.replace(self, reach=reach, bidirectional=bidirectional)

    def check_positions(self, p, position):
        check_whole("music_transformer", position)

    def overrides(self, *hooks):
        return Scheme.overrides(self, *(h for h in hooks if h != "value_bias" or self.values))

    def init(self, key, dims):
        return self._tables(key, dims) if self.shared else {}

    def init_head(self, key, dims):
        return {} if self.shared else self._tables(key, dims)

    def _tables(self, key, dims):
        names, shape = ("key", "value") if self.values else ("key",), (self._rows, dims.head)
        draw = lambda k: dims.head**-0.5 * jax.random.normal(k, shape)  # noqa: E731
        return {name: draw(k) for name, k in zip(names, jax.random.split(key, len(names)), strict=True)}

    def query(self, p, q, info):
        return q, product(q, p["key"].T)  # its score of every distance

    def score(self, p, s, tile):
        by_distance = (tile.query_info * tile.scale).astype(s.dtype)
        return s + jnp.take_along_axis(by_distance, self._row(tile.distance), 1, mode="fill", fill_value=0)

    def value_bias(self, p, a, tile):
        r = self._row(tile.distance)
        queries = jnp.arange(r.shape[0])[:, None]
        weight = jnp.zeros((r.shape[0], self._rows), a.dtype).at[queries, r].add(a, mode="drop")  # of each distance
        return weight @ p["value"].astype(a.dtype)

    @property
    def _rows(self) -> int:
        return 2 * bound_setting(self.reach) - 1 if self.bidirectional else bound_setting(self.reach)

    def _row(self, distance: Num[Array, "Q K"]) -> Int[Array, "Q K"]:
        """The row of each pair; for a pair without one, the first index past the table."""
        row = bound_setting(self.reach) - 1 - distance
        return jnp.where(row < 0, self._rows, row)  # a negative row would count from the end
