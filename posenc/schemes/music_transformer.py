"""Music Transformer: a learned vector for every distance, and none beyond the table."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Num

from posenc.core.scheme import Scheme, check_whole
from posenc.numerics.precision import product


class MusicTransformer(Scheme, name="music_transformer"):
    """A learned vector for every distance that the query meets; beyond the table there is none (Huang et al., 2019,
    §3.4).

        s_ij = q_i · (k_j + e_r) / √d,   r = p_i - p_j,   0 ≤ r < reach, or |r| < reach;   e_r = 0 elsewhere

    Shaw's distances are clipped, these end. The table has a row for each distance of training unless `reach` says
    otherwise; where the model sees both ways it has `2 reach - 1`, for keys on either side. Each head has vectors of
    its own; `shared` is the authors' option to share them within a layer, and `values` adds vectors to values too. The
    first row is the farthest past, as in their tables, and rows start as N(0, 1 / d). The paper computes the term by
    skewing q eᵀ, which is only a way to read it: here each pair reads its own entry, so positions may be any.

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
    """The first distance without a vector; the longest sequence trained on, unless given."""
    values: bool = False
    shared: bool = False
    bidirectional: bool | None = None
    """Whether keys after the query have vectors; as the model sees, unless given."""

    family = "table"
    extrapolates = "not: distances beyond the table add nothing"
    reads = "content"
    limits = property(
        lambda self: (
            {"bidirectional": "its vectors are for keys before the query"} if self.bidirectional is False else {}
        )
    )
    samples = ({"reach": 3, "values": True, "shared": True}, {"reach": 4, "bidirectional": True, "values": True})

    def validate(self):
        if self.reach is not None and self.reach < 1:
            raise ValueError(f"The reach of 'music_transformer' is a distance of at least 1, not {self.reach}.")

    def bind(self, dims):
        both = not dims.causal if self.bidirectional is None else self.bidirectional
        return dataclasses.replace(self, reach=dims.trained if self.reach is None else self.reach, bidirectional=both)

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
        return q, product(q, p["key"].T)  # its word on every distance

    def score(self, p, s, tile):
        word = (tile.query_info * tile.scale).astype(s.dtype)
        return s + jnp.take_along_axis(word, self._row(tile.distance), 1, mode="fill", fill_value=0)

    def value_bias(self, p, a, tile):
        r = self._row(tile.distance)
        queries = jnp.arange(r.shape[0])[:, None]
        weight = jnp.zeros((r.shape[0], self._rows), a.dtype).at[queries, r].add(a, mode="drop")  # of each distance
        return weight @ p["value"].astype(a.dtype)

    @property
    def _rows(self) -> int:
        return 2 * self.reach - 1 if self.bidirectional else self.reach

    def _row(self, distance: Num[Array, "Q K"]) -> Int[Array, "Q K"]:
        """The row of each pair, and the first past the table for a pair that has none."""
        row = self.reach - 1 - distance
        return jnp.where(row < 0, self._rows, row)  # a row below 0 would be counted from the end
