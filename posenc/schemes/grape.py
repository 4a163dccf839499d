"""GRAPE's additive forms: ALiBi with slopes from content, and a penalty summed over the tokens between."""

from __future__ import annotations

import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from posenc.core.scheme import Scheme, bias_dtype, by_settings, later
from posenc.numerics.bias import slope
from posenc.numerics.precision import product
from posenc.numerics.rotation import angles, rotate


class GRAPEA(Scheme, name="grape_a"):
    """ALiBi with slopes computed from keys, queries or both (GRAPE-A; Zhang et al., 2026; the authors' code).

        s_ij - max(p_i - p_j, 0) softplus(ω_h) m_h (softplus(u_h · k_j / √d) + softplus(v_h · q_i / √d))

    m_h are the slopes of ALiBi. `gate` selects one or both of the two terms in brackets. u and v are normalised to
    length 1 unless `unit=False`; √d and m_h are in the authors' code but not in its comments. ω starts where softplus
    is 1. In a sum of schemes the gates read query and key after the hooks of the schemes before this one.

    ```bibtex
    @inproceedings{zhang2026group,
      title = {Group Representational Position Encoding},
      author = {Zhang, Yifan and Chen, Zixiang and Liu, Yifeng and Qin, Zhen and Yuan, Huizhuo and Xu, Kangping and
                Yuan, Yang and Gu, Quanquan and Yao, Andrew Chi-Chih},
      booktitle = {International Conference on Learning Representations},
      year = {2026},
      eprint = {2512.07805},
    }
    ```
    """

    gate: Literal["key", "query", "both"] = "key"
    unit: bool = True

    family = "context"
    extrapolates = "some (Zhang et al., 2026)"
    reads = "content"
    limits = {"bidirectional": "its penalty is for what came before, and what comes after would go free"}
    samples = ({"gate": "query"}, {"gate": "both", "unit": False})

    def init_head(self, key, dims):
        u, v = (jax.random.normal(k, (dims.head,)) * dims.head**-0.5 for k in jax.random.split(key))
        p = {"omega": jnp.asarray(math.log(math.expm1(1)), jnp.float32)}
        return p | ({"u": u} if self.gate != "query" else {}) | ({"v": v} if self.gate != "key" else {})

    def query(self, p, q, info):
        return q, self._gate(p["v"], q) if "v" in p else ()

    def key(self, p, k, info):
        return k, self._gate(p["u"], k) if "u" in p else ()

    def score(self, p, s, tile):
        exact = bias_dtype(s)
        rate = jax.nn.softplus(p["omega"].astype(exact)) * slope(tile.head, tile.heads).astype(exact)
        gates = jnp.zeros((), exact)
        if "v" in p:
            gates = gates + tile.query_info.astype(exact)[:, None]
        if "u" in p:
            gates = gates + tile.key_info.astype(exact)[None, :]
        return s - jnp.maximum(tile.distance, 0).astype(exact) * rate * gates

    def _gate(self, direction: Float[Array, " d"], x: Float[Array, "L d"]) -> Float[Array, " L"]:
        direction = direction.astype(bias_dtype(x))
        if self.unit:
            direction = direction * jax.lax.rsqrt(jnp.maximum((direction**2).sum(), 1e-12))
        return jax.nn.softplus(product(x, direction) * direction.size**-0.5)


class GRAPEAP(Scheme, name="grape_ap"):
    """A penalty summed over the tokens between key and query, each from its similarity to the query (GRAPE-AP; Zhang et
    al., 2026; the authors' code).

        s_ij + Σ_{l = j+1 … i} m_h log σ(a_i · R(-p_l) norm(a_l) / n),   a = W_h x, n = `features`;  or a = k, or a = v

    m_h are the slopes of ALiBi, norm scales the mean square to 1, and R rotates each pair of features, c and c + n/2,
    by the position in radians. As in the authors' code only a_l is rotated and normalised, so the penalty is not a
    function of distances. The sum runs over tokens in the order of their index, whatever their positions, and skips
    padding.

    `source` is the authors' p_tie_mode: with "key" and "value" nothing is learned, and a is the key or the value of
    the token, after the hooks of the schemes before this one, with n features of a head; query heads that share a key
    head share a. From keys without a norm it is the scheme of the input with the model's key weights for W, and from
    values with the value weights. The authors can also take a from queries: from those without a norm it is the scheme
    of the input with the query weights for W. With a norm it is not offered, since a cache keeps no queries.

    ```bibtex
    @inproceedings{zhang2026group,
      title = {Group Representational Position Encoding},
      author = {Zhang, Yifan and Chen, Zixiang and Liu, Yifeng and Qin, Zhen and Yuan, Huizhuo and Xu, Kangping and
                Yuan, Yang and Gu, Quanquan and Yao, Andrew Chi-Chih},
      booktitle = {International Conference on Learning Representations},
      year = {2026},
      eprint = {2512.07805},
    }
    ```
    """

    features: int = 8
    """The features of a where `source` is "input"."""
    source: Literal["input", "key", "value"] = later("input")
    """Source of a: the input of attention, by learned weights, or each token's key or value as it is."""

    family = "context"
    extrapolates = "some (Zhang et al., 2026)"
    reads = "row"
    positional = True  # its keys are rotated
    contextual = by_settings(lambda self: self.source == "input")
    limits = {
        "bidirectional": "its penalties add up from a key to a later query",
        "cross": "its penalties add up along one sequence",
    }
    samples = ({"features": 2}, {"source": "key"}, {"source": "value"})

    def validate(self):
        if self.features < 2 or self.features % 2:
            raise ValueError(f"'grape_ap' has features={self.features}; it must be even and at least 2, to make pairs.")
        if self.source != "input" and self.features != 8:
            raise ValueError(
                f"'grape_ap' with source={self.source!r} has the features of a head, and features={self.features} was"
                " given; leave features out."
            )

    def bind(self, dims):
        if self.source != "input":
            _check_pairs(self.source, dims.head)
        return self

    def init_head(self, key, dims):
        if self.source != "input":
            return {}
        return {"w": 0.5 * dims.width**-0.5 * jax.random.normal(key, (self.features, dims.width))}

    def locate(self, p, x: Float[Array, "L D"], at, carry):
        return (product(x, p["w"].T) if self.source == "input" else (), at.position), carry

    def query(self, p, q, info):
        return q, info[0]

    def key(self, p, k, info):
        if self.source == "input":
            return k, (_rotated_norm(*info), ())
        return k, self._features(k, info) if self.source == "key" else ()

    def pair(self, p, k, v, info):
        k, passed = self.key(p, k, info)
        return k, self._features(v, info) if self.source == "value" else passed, v

    def _features(self, a: Float[Array, "L d"], info: Any) -> tuple[Array, Array]:
        """Return what `score` reads of a key: its features, rotated and normalised, and as they are."""
        _check_pairs(self.source, a.shape[-1])
        return _rotated_norm(a.astype(bias_dtype(a)), info[1]), a

    def score(self, p, s, tile):
        rotated, plain = tile.key_info
        a = tile.query_info if self.source == "input" else plain.at[tile.qi].get(mode="fill")
        likeness = product(a, rotated.T) / rotated.shape[-1]
        step = jax.nn.log_sigmoid(likeness) * slope(tile.head, tile.heads).astype(likeness.dtype)
        step = jnp.where(tile.visible, step, 0)
        return s + (jax.lax.cumsum(step, 1, reverse=True) - step).astype(s.dtype)


def _rotated_norm(a: Float[Array, "L n"], position: Num[Array, " L"]) -> Float[Array, "L n"]:
    """R(-p) norm(a)."""
    a = a * jax.lax.rsqrt((a**2).mean(-1, keepdims=True) + 2.0**-23)
    return rotate(a, -angles(position, np.ones(a.shape[-1] // 2), a.dtype), "half")


def _check_pairs(source: str, head: int) -> None:
    if head % 2:
        raise ValueError(
            f"'grape_ap' with source={source!r} turns pairs of features, and a head has {head}; make head even."
        )
