"""Layer normalisation, and dropout: in training, features are left out at random (Srivastava et al., 2014).

    y = x ⊙ m / (1 - rate),   m = 1 with probability 1 - rate, else 0

What is left out is drawn by place in the model and position by position, so a batch that is padded further loses the
same features.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from posenc.lab.models.draws import meant


class Dropout:
    """`drop.at("layer", 3).at("feed")(x)`: each place has a key of its own. Without a key nothing is left out."""

    def __init__(self, rate: float, key: PRNGKeyArray | None):
        self.rate, self.key = rate, key

    def at(self, *words: str | int | Array) -> Dropout:
        """Dropout at a place in the model."""
        return self if self.key is None else Dropout(self.rate, meant(self.key, *words))

    def __call__(self, x: Float[Array, "B T D"]) -> Float[Array, "B T D"]:
        if self.key is None:
            return x
        batch, length, width = x.shape
        kept = jax.random.bernoulli(self.key, 1 - self.rate, (length, batch, width)).swapaxes(0, 1)
        return jnp.where(kept, x / (1 - self.rate), 0)


NOTHING = Dropout(0.0, None)
"""Leaves everything in."""


def dropout(rate: float, key: PRNGKeyArray, train: bool) -> Dropout:
    """Dropout of one forward pass. The key may draw other things too: it is folded by a word."""
    return Dropout(rate, key).at("dropout") if train and rate else NOTHING


def normalise(x: Float[Array, "... width"], scale: Float[Array, " width"]) -> Float[Array, "... width"]:
    """x over its deviation from its mean, with a scale and no shift (Ba et al., 2016), in float32 at least."""
    exact = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    exact = exact - exact.mean(-1, keepdims=True)
    exact = exact * jax.lax.rsqrt((exact**2).mean(-1, keepdims=True) + 1e-6)
    return (exact * scale.reshape((1,) * (x.ndim - 1) + (-1,))).astype(x.dtype)
