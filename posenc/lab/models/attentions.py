"""Scores of a Transformer before position enters: each is a scheme that precedes the positional one.

    scaled_dot   s_ij = q_i · k_j / √d              (Vaswani et al., 2017, §3.2.1)
    dot          s_ij = q_i · k_j                   (Luong et al., 2015, §3.1)
    additive     s_ij = vᵀ tanh(W₁ q_i + W₂ k_j)    (Bahdanau et al., 2014, §A.1.2), v, W₁ and W₂ of each head
    average      s_ij = 0, so that all visible tokens have equal weight

The formulas are those of one head. Schemes that add to the score act after all of them. "additive" and "average" have
no product of q and k. So schemes that rotate or scale q and k, or read the product, are refused. "average" leaves W_q
and W_k without effect and without gradient. "dot" starts with the same weights as the scaled product, so its scores
start √d times as large.
"""

from __future__ import annotations

from typing import Any, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from posenc.core.compose import Pattern, add, normal_form, parts
from posenc.core.scheme import Dims, Scheme
from posenc.lab.models.kinds import Attention

WEIGHTS = ("from_query", "from_key", "to_score")
"""The weights of additive attention, as parameters name them; weight decay acts on all of them, v included."""


class Dot(Scheme, name=None):
    """Products of queries and keys, not divided by √d."""

    name = "dot"

    def scale(self, d):
        return 1.0


class Additive(Scheme, name=None):
    """A layer of tanh units for each pair of tokens; it has as many units as a head has features."""

    name = "additive"
    reads = "content"
    precedence = "first"

    def init_head(self, key, dims):
        d, (first, second, third) = dims.head, jax.random.split(key, 3)
        matrices = [jax.random.normal(k, (d, d)) * d**-0.5 for k in (first, second)]
        return dict(zip(WEIGHTS, (*matrices, jax.random.normal(third, (d,)) * d**-0.5), strict=True))

    def query(self, p, q, info):
        return q, q @ p["from_query"].astype(q.dtype)

    def key(self, p, k, info):
        return k, k @ p["from_key"].astype(k.dtype)

    def score(self, p, s, tile):
        return additive(tile.query_info.astype(s.dtype), tile.key_info.astype(s.dtype), p["to_score"].astype(s.dtype))


class Average(Scheme, name=None):
    """Equal score for all keys."""

    name = "average"
    reads = "content"
    precedence = "first"

    def score(self, p, s, tile):
        return jnp.zeros_like(s)


PARTS: dict[str, Scheme] = {"dot": Dot(), "additive": Additive(), "average": Average()}
assert {"scaled_dot", *PARTS} == set(get_args(Attention))


def additive(q: Float[Array, "Q u"], k: Float[Array, "K u"], v: Float[Array, " u"]) -> Float[Array, "Q K"]:
    """vᵀ tanh(q_i + k_j) of every pair."""
    return jnp.tanh(q[:, None] + k[None]) @ v


def with_attention(attention: str, scheme: Any, dims: Dims) -> Any:
    """The scheme combined with this attention, in every layer of a pattern.

    Raises `ValueError` where the scheme needs a product of queries and keys that this attention lacks.
    """
    if attention == "scaled_dot":
        return scheme
    if isinstance(scheme, Pattern):
        return Pattern(tuple(with_attention(attention, s, dims) for s in scheme.layers), scheme.input)
    part = PARTS[attention]
    for s in parts(scheme) if part.precedence == "first" else ():
        if s.precedence == "first" or s.reads == "heads" or s.overrides("query", "key"):
            raise ValueError(
                f"{s.name!r} acts on the product of queries and keys, which attention={attention!r} does not have; take"
                " a scheme that adds to the input or to the score, such as sinusoidal or alibi."
            )
    return add(part, scheme).bind(dims)


def query_factor(scheme: Any, composed: Any, dims: Dims) -> float:
    """The factor that gives the initial query weights the size they have under the scheme alone.

    Query weights are drawn smaller where scores are not divided by √d, so that scores start equally large. The kinds of
    attention are to be compared with equal weights instead.
    """
    if composed == scheme:
        return 1.0
    return normal_form(composed).scheme.scale(dims.head) / normal_form(scheme).scheme.scale(dims.head)
