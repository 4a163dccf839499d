"""TUPE: scores between positions, by separate projections, added to those of content."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from posenc.core.scheme import Scheme, bias_dtype, by_settings
from posenc.numerics.bias import bucket
from posenc.numerics.precision import product
from posenc.numerics.token_numbers import check_rows, rows_at

EPS = 1e-5


class TUPE(Scheme, name="tupe"):
    """Separate scores of content with content and of position with position (Ke et al., 2021, §3).

        s_ij = q_i · k_j / √(2d) + (n(p_i) U_h) · (n(p_j) V_h) / √(2d) + t_h[bucket(p_i - p_j)]

    p is a learned table, n a layer norm, U and V have biases as in the authors' code, and all layers share all of them.
    The second term is computed by widening query and key by d features, without an array of pairs; the added features
    are rounded to the model's type. `buckets` other than 0 adds T5's bias as in TUPE-R, half of them for keys after the
    query, in causal models too.

    `reset` is for models whose position 0 is [CLS], as the authors' are; they always set it. The second term then has
    one constant in the row of [CLS] and another in its column, so that [CLS] is not close to any position. As in their
    code the two constants are the scores of rows 0 and 1 of the table with themselves, other tokens start at row 2, and
    [CLS] uses two buckets: one that no distance uses, and an additional one. p, U, V and t start as N(0, 0.02²), biases
    at 0, as theirs. Positions beyond the table are refused, and give NaN where they are not known before the program
    runs, as in one exported for every length.

    ```bibtex
    @inproceedings{ke2021rethinking,
      title = {Rethinking Positional Encoding in Language Pre-training},
      author = {Ke, Guolin and He, Di and Liu, Tie-Yan},
      booktitle = {International Conference on Learning Representations},
      year = {2021},
      eprint = {2006.15595},
    }
    ```
    """

    reset: bool = False
    buckets: int = 0
    reach: int = 128
    """The distance from which all keys share a bucket."""

    family = "absolute"
    extrapolates = "not: there are no rows beyond the table"
    reads = by_settings(lambda self: ("positions" if self.reset else "distance") if self.buckets else "nothing")
    tied = frozenset({"table", "gain", "offset", "query", "query_bias", "key", "key_bias", "bias"})
    limits = {"cross": "it compares places within one sequence"}
    precedence = "last"
    samples = ({"buckets": 8, "reach": 6}, {"reset": True, "buckets": 8, "reach": 5}, {"reset": True})

    def validate(self):
        if self.buckets and (self.buckets < 4 or self.buckets % 4):
            raise ValueError(
                f"'tupe' has buckets={self.buckets}; it must be a multiple of 4, half of them on each side."
            )
        if not self.buckets and self.reach != type(self).reach:
            raise ValueError("'tupe' without buckets does not use reach; give buckets=32, or leave reach out.")
        if self.buckets and self.reach <= self.buckets // 4:
            raise ValueError(
                f"'tupe' has reach={self.reach}; it must be more than the {self.buckets // 4} distances with their own"
                " bucket."
            )

    def overrides(self, *hooks):
        return Scheme.overrides(self, *(h for h in hooks if h != "score" or self.buckets))

    def check_positions(self, p, position):
        check_rows("tupe", position, p["table"].shape[0] - self.reset)

    def init(self, key, dims):
        rows = dims.table + self.reset
        table = 0.02 * jax.random.normal(key, (rows, dims.width))
        return {"table": table, "gain": jnp.ones(dims.width), "offset": jnp.zeros(dims.width)}

    def init_head(self, key, dims):
        draw = lambda k, *shape: 0.02 * jax.random.normal(k, shape)  # noqa: E731
        u, v, t = jax.random.split(key, 3)
        p = {"query": draw(u, dims.width, dims.head), "key": draw(v, dims.width, dims.head)}
        p |= {f"{name}_bias": jnp.zeros(dims.head) for name in ("query", "key")}
        return p | ({"bias": draw(t, self.buckets + self.reset)} if self.buckets else {})

    def scale(self, d):
        return (2 * d) ** -0.5

    def query(self, p, q, info):
        return self._widened(p, q, info, "query"), info

    def key(self, p, k, info):
        return self._widened(p, k, info, "key"), info

    def score(self, p, s, tile):
        if not self.buckets:
            return s
        row = bucket(tile.distance, self.buckets, self.reach, True)
        if self.reset:
            row = jnp.where(tile.key_info[None, :] == 0, self.buckets, row)
            row = jnp.where(tile.query_info[:, None] == 0, self.buckets // 2, row)
        return s + p["bias"].astype(bias_dtype(s))[row]

    def _widened(self, p: dict, x: Float[Array, "L d"], position: Int[Array, " L"], side: str) -> Float[Array, "L e"]:
        p = {name: jnp.asarray(a, bias_dtype(x)) for name, a in p.items()}
        at = _project(p, rows_at(p["table"][int(self.reset) :], position), side)
        if not self.reset:
            return jnp.concatenate([x, at.astype(x.dtype)], -1)
        row, column = (_project(p, p["table"][:2], "query") * _project(p, p["table"][:2], "key")).sum(-1)
        cls = (position == 0)[:, None]
        # two features select, for queries that are [CLS] and for others, one of the two constants of each key
        if side == "query":
            constants = [cls, ~cls]
        else:
            constants = [jnp.broadcast_to(row, cls.shape), jnp.where(cls, column, 0)]
        wide = [jnp.where(cls, 0, at), *constants]
        return jnp.concatenate([x, *(a.astype(x.dtype) for a in wide)], -1)


def _project(p: dict, rows: Float[Array, "L D"], side: str) -> Float[Array, "L d"]:
    """Rows of the table after layer norm, projected for the queries' side or the keys'."""
    centred = rows - rows.mean(-1, keepdims=True)
    normal = centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + EPS)
    return product(normal * p["gain"][None, :] + p["offset"][None, :], p[side]) + p[f"{side}_bias"][None, :]
