"""How a Transformer's scores are made before position enters: each a part that stands in front of the scheme.

    scaled_dot   s_ij = q_i · k_j / √d              (Vaswani et al., 2017, §3.2.1)
    dot          s_ij = q_i · k_j                   (Luong et al., 2015, §3.1)
    additive     s_ij = vᵀ tanh(W₁ q_i + W₂ k_j)    (Bahdanau et al., 2014, §A.1.2), v, W₁ and W₂ of each head
    average      s_ij = 0, so that all in sight weigh alike

With one head each is its formula. Schemes that add to the score act after all of them. The last two have no product of
q and k, so what turns or scales these, or reads the product, is refused. "average" leaves W_q and W_k without effect
and without gradient. "dot" starts with the weights that the scaled product has, so its scores start √d times as large.
"""

from __future__ import annotations

from typing import Any, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from posenc.core.compose import Pattern, add, bare, leaves
from posenc.core.scheme import Dims, Scheme
from posenc.lab.models.kinds import Attention

WEIGHTS = ("from_query", "from_key", "to_score")
"""The weight matrices of an attention of its own; v of all heads is one too."""


class Dot(Scheme, name=None):
    """Products that nothing divides."""

    name = "dot"

    def scale(self, d):
        return 1.0


class Additive(Scheme, name=None):
    """A layer of tanh units for each pair, as many as a head has features."""

    name = "additive"
    reads = "content"
    precedence = "first"

    def init_head(self, key, dims):
        d, (one, two, three) = dims.head, jax.random.split(key, 3)
        matrices = [jax.random.normal(k, (d, d)) * d**-0.5 for k in (one, two)]
        return dict(zip(WEIGHTS, (*matrices, jax.random.normal(three, (d,)) * d**-0.5), strict=True))

    def query(self, p, q, info):
        return q, q @ p["from_query"].astype(q.dtype)

    def key(self, p, k, info):
        return k, k @ p["from_key"].astype(k.dtype)

    def score(self, p, s, tile):
        return additive(tile.query_info.astype(s.dtype), tile.key_info.astype(s.dtype), p["to_score"].astype(s.dtype))


class Average(Scheme, name=None):
    """The same score for all."""

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


def under(attention: str, scheme: Any, dims: Dims) -> Any:
    """A scheme on this attention, or a pattern with this attention in every layer; refuses what it has no place for."""
    if attention == "scaled_dot":
        return scheme
    if isinstance(scheme, Pattern):
        return Pattern(tuple(under(attention, s, dims) for s in scheme.layers), scheme.input)
    part = PARTS[attention]
    for s in leaves(scheme) if part.precedence == "first" else ():
        if s.precedence == "first" or s.reads == "heads" or s.overrides("query", "key"):
            raise ValueError(
                f"attention={attention!r} has no product of queries and keys that {s.name!r} could act on; take a"
                " scheme that adds to the input or to the score, such as sinusoidal or alibi."
            )
    return add(part, scheme).bind(dims)


def spread(scheme: Any, composed: Any, dims: Dims) -> float:
    """By what drawn query weights are multiplied so that they are those of the scheme alone.

    They are drawn smaller where scores are not divided, so that these start alike; here that is what is compared.
    """
    return bare(composed).scale(dims.head) / bare(scheme).scale(dims.head)
