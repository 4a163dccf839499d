"""Transformer-XL: four terms of content and position, two of them with a learned bias instead of the query."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from posenc.core.scheme import Scheme, bias_dtype, by_settings, later
from posenc.numerics.rotation import angles, check_base, frequencies


class TransformerXL(Scheme, name="transformer_xl"):
    """The query and learned biases score both the keys and sinusoids of the distance (Dai et al., 2019, §3.3).

        s_ij = ((q_i + u_h) · k_j + (q_i + v_h) · W_h R_{i-j}) / √d

    A sinusoid of i - j is a sum of products of sinusoids of i and of j. So the second product is computed by widening
    query and key by as many features as the model has, without an array of distances and without the authors' shifting,
    whose entries for future keys come from other rows. The added features are rounded to the model's type. As in the
    authors' code R is all sines, then all cosines; u and v are shared by all layers, W is not.

    `form="scored"` computes the second product from the distance of each pair instead, for sampled distances that do
    not come from positions (Ruoss et al., 2023: `random_sorted` over "distances"). It costs an array of as many
    features as the model has for each pair of tokens.

    ```bibtex
    @inproceedings{dai2019transformer,
      title = {Transformer-{XL}: Attentive Language Models beyond a Fixed-Length Context},
      author = {Dai, Zihang and Yang, Zhilin and Yang, Yiming and Carbonell, Jaime and Le, Quoc V. and
                Salakhutdinov, Ruslan},
      booktitle = {Proceedings of the Annual Meeting of the Association for Computational Linguistics},
      year = {2019},
      eprint = {1901.02860},
    }
    ```
    """

    base: float = 10000.0
    form: Literal["wide", "scored"] = later("wide")

    family = "sinusoid"
    extrapolates = "some (Dai et al., 2019)"
    reads = by_settings(lambda self: "nothing" if self.form == "wide" else "content")
    tied = frozenset({"u", "v"})
    precedence = by_settings(lambda self: "last" if self.form == "wide" else "any")
    samples = ({"base": 100.0}, {"form": "scored"})

    def validate(self):
        check_base(self.name, self.base)

    def bind(self, dims):
        if dims.width % 2:
            raise ValueError(f"'transformer_xl' pairs sines and cosines, so the width must be even, not {dims.width}.")
        return self

    def overrides(self, *hooks):
        return Scheme.overrides(self, *(h for h in hooks if h != "score" or self.form == "scored"))

    def init_head(self, key, dims):
        u, v, w = jax.random.split(key, 3)
        draw = lambda key, *shape: 0.02 * jax.random.normal(key, shape)  # noqa: E731
        return {"u": draw(u, dims.head), "v": draw(v, dims.head), "w": draw(w, dims.width, dims.head)}

    def query(self, p, q, info):
        projected = jnp.matmul(q + p["v"][None, :].astype(q.dtype), p["w"].T.astype(q.dtype), precision="highest")
        sines, cosines = jnp.split(projected, 2, -1)
        if self.form == "scored":
            return q + p["u"][None, :].astype(q.dtype), (sines, cosines)
        sin, cos = self._turns(p, info, q)
        wide = [q + p["u"][None, :].astype(q.dtype), sines * sin + cosines * cos, cosines * sin - sines * cos]
        return jnp.concatenate(wide, -1), info

    def key(self, p, k, info):
        if self.form == "scored":
            return k, ()
        sin, cos = self._turns(p, info, k)
        return jnp.concatenate([k, cos, sin], -1), info

    def score(self, p, s, tile):
        if self.form == "wide":
            return s
        exact = bias_dtype(s)
        turns = frequencies(p["w"].shape[0], self.base)
        angle = angles(tile.distance.reshape(-1), turns, exact).reshape(*tile.distance.shape, -1)
        sines, cosines = (a.astype(exact) for a in tile.query_info)
        second = sum(
            jnp.einsum("qn,qkn->qk", part, wave(angle), precision="highest")
            for part, wave in ((sines, jnp.sin), (cosines, jnp.cos))
        )
        return s + tile.scale * jnp.asarray(second).astype(s.dtype)

    def _turns(
        self, p: dict, position: Num[Array, " L"], like: Array
    ) -> tuple[Float[Array, "L n"], Float[Array, "L n"]]:
        angle = angles(position, frequencies(p["w"].shape[0], self.base), bias_dtype(like))
        return jnp.sin(angle).astype(like.dtype), jnp.cos(angle).astype(like.dtype)
