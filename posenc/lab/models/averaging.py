"""A bag of words: every token in sight counts alike, and neither order nor the token's own place does.

    x_t = mean of the embeddings in sight of t,   then `depth` times x' = relu(W x + b)      (Iyyer et al., 2015, §3)

In sight are the tokens up to t, or all where a model sees both ways; what acts on the input is averaged with it.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from posenc.core.scheme import bias_dtype
from posenc.lab.models.draws import cut
from posenc.lab.models.ends import Ends, only_input
from posenc.lab.models.inputs import Inputs
from posenc.lab.models.parts import dropout
from posenc.lab.models.shape import Shape


class Averaging(Ends):
    """Tokens to logits at every token."""

    def __init__(self, scheme: Any, shape: Shape, key: PRNGKeyArray):
        self.input, self.shape = only_input(scheme, shape), shape
        width = shape.dims.width
        inner = lambda rngs: rngs.params.normal((width, width)) * (2 / width) ** 0.5  # noqa: E731
        weights, outer = cut([(inner, shape.depth), (self._outer, None)], key)
        self.inner, self.bias = nnx.Param(weights), nnx.Param(jnp.zeros((shape.depth, width)))
        self._keep(*outer)

    def __call__(self, inputs: Inputs, key: PRNGKeyArray, *, train: bool = False) -> Float[Array, "B T classes"]:
        """Padding counts for nothing. `key` draws positions, where coordinates are random, and what dropout leaves."""
        drop = dropout(self.shape.dropout, key, train)
        x = self.enter(inputs, key, train)
        x = drop.at("attention")(mean(x, inputs.valid, self.shape.dims.causal))

        def layer(x, turn):
            n, w, b = turn
            return drop.at("layer", n)(jax.nn.relu(x @ w.astype(x.dtype) + b.astype(x.dtype)[None, None])), None

        turns = jnp.arange(self.shape.depth), self.inner.get_value(), self.bias.get_value()
        return self.leave(jax.lax.scan(layer, x, turns)[0])


def mean(x: Float[Array, "B T D"], valid: Bool[Array, "B T"], causal: bool) -> Float[Array, "B T D"]:
    """The mean of the real tokens in sight of each token; zero where there are none."""
    exact = jnp.where(valid[..., None], x, 0).astype(bias_dtype(x))
    total, count = exact.cumsum(1), valid.cumsum(1)
    if not causal:
        total, count = (jnp.broadcast_to(a[:, -1:], a.shape) for a in (total, count))
    return (total / jnp.maximum(count, 1)[..., None]).astype(x.dtype)
