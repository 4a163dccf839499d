"""DeBERTa: scores between content and position, and between position and content, by vectors of the distance."""

from __future__ import annotations

import dataclasses
from typing import Literal

import jax
import jax.numpy as jnp

from posenc.core.scheme import Scheme, bias_dtype, bound_setting, check_whole
from posenc.numerics.bias import check_reach, disentangled
from posenc.numerics.precision import product


class DeBERTa(Scheme, name="deberta"):
    """Disentangled attention: the query and the key are each scored with a vector of the distance (He et al., 2021,
    §3.1).

        s_ij = (q_i · k_j + q_i · (P_r U_h + b_h) + k_j · (P_r V_h + c_h)) / √(3d),   r = row(p_i - p_j)

    The two terms are "c2p", content to position, and "p2c", position to content; `terms` may drop one, and then the
    division is by √(2d). P is one table of `2 buckets` rows for all layers. With as many buckets as the reach, the
    default and the paper's form, each distance from -reach to reach - 1 has its row. With fewer, half of them have one
    distance each and the others grow logarithmically, as with 256 of 512 in the authors' v2 and v3. All longer
    distances share the last row. The logarithms are computed on the host, as integer thresholds.

    For p2c the paper writes row(p_j - p_i); the authors' code reads row(p_i - p_j), in v1 and v2, and so does this
    scheme unless `mirrored`. U, b, V and c are parameters of each layer; b, which v1 leaves out, adds the same number
    to all scores of a query. In v2 the projections of x to keys and queries may serve P too (`share_att_key`). A scheme
    does not have them: pass the same arrays as parameters. v2's layer norm of P is left to the caller.

    ```bibtex
    @inproceedings{he2021deberta,
      title = {{DeBERTa}: Decoding-Enhanced {BERT} with Disentangled Attention},
      author = {He, Pengcheng and Liu, Xiaodong and Gao, Jianfeng and Chen, Weizhu},
      booktitle = {International Conference on Learning Representations},
      year = {2021},
      eprint = {2006.03654},
    }
    ```
    """

    terms: Literal["both", "c2p", "p2c"] = "both"
    reach: int = 512
    buckets: int | None = None
    """Buckets on each side; the reach, unless set."""
    mirrored: bool = False
    """True if p2c reads the distance from the key to the query, as the paper writes it."""

    family = "table"
    extrapolates = "none reported"
    reads = "content"
    tied = frozenset({"table"})
    limits = {"cross": "its distances are within one sequence"}
    samples = (
        {"reach": 6, "buckets": 4},
        {"reach": 3, "terms": "c2p"},
        {"reach": 4, "terms": "p2c"},
        {"reach": 5, "mirrored": True},
    )

    def validate(self):
        check_reach("deberta", self.reach)
        if self.reach < 1:
            raise ValueError(f"'deberta' has reach={self.reach}; it must be at least 1.")
        least = self.buckets in (None, self.reach) or self.buckets >= 4 and self.buckets % 2 == 0
        if not least or (self.buckets or 0) > self.reach:
            raise ValueError(
                f"'deberta' with reach={self.reach} has buckets={self.buckets}; they must equal the reach, or be fewer,"
                " at least 4 and even."
            )
        if self.mirrored and self.terms == "c2p":
            raise ValueError(
                "'deberta' has mirrored=True, which only the term 'p2c' uses; add that term, or leave mirrored out."
            )

    def bind(self, dims):
        return dataclasses.replace(self, buckets=self.reach if self.buckets is None else self.buckets)

    def check_positions(self, p, position):
        check_whole("deberta", position)

    def overrides(self, *hooks):
        return Scheme.overrides(self, *(h for h in hooks if h != "key" or self.terms != "c2p"))

    def init(self, key, dims):
        return {"table": 0.02 * jax.random.normal(key, (2 * bound_setting(self.buckets), dims.width))}

    def init_head(self, key, dims):
        p = {}
        for name, k in zip(("key", "query"), jax.random.split(key), strict=True):
            if self.terms == "both" or self.terms == {"key": "c2p", "query": "p2c"}[name]:
                p[name] = 0.02 * jax.random.normal(k, (dims.width, dims.head))
                p[f"{name}_bias"] = jnp.zeros(dims.head)
        return p

    def scale(self, d):
        return (d * (3 if self.terms == "both" else 2)) ** -0.5

    def query(self, p, q, info):
        return q, info if self.terms == "p2c" else _by_distance(p, "key", q)

    def key(self, p, k, info):
        return k, info if self.terms == "c2p" else _by_distance(p, "query", k)

    def score(self, p, s, tile):
        row = disentangled(tile.distance, bound_setting(self.buckets), self.reach)
        if self.terms != "p2c":
            s = s + jnp.take_along_axis((tile.query_info * tile.scale).astype(s.dtype), row, 1)
        if self.terms != "c2p":
            row = disentangled(-tile.distance, bound_setting(self.buckets), self.reach) if self.mirrored else row
            s = s + jnp.take_along_axis((tile.key_info * tile.scale).astype(s.dtype), row.T, 1).T
        return s


def _by_distance(p: dict, name: str, x: jax.Array) -> jax.Array:
    """The score of each token's content with every row of the table, `[L, 2 buckets]`, in float32 at least."""
    e = bias_dtype(x)
    made = product(p["table"].astype(e), p[name]) + p[f"{name}_bias"].astype(e)[None, :]
    return product(x, made.T)
