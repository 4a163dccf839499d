"""A bag of words: all visible tokens count equally, and neither their order nor their positions count.

    x_t = mean of the embeddings visible to t,   then `depth` times x' = relu(W x + b)      (Iyyer et al., 2015, §3)

The tokens up to t are visible, or all of them in a bidirectional model. An input scheme acts before the mean.
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
from posenc.lab.models.interface import Inputs, Shape
from posenc.lab.models.parts import dropout
from posenc.lab.models.weights import Weight


class Averaging(Ends):
    """Tokens to logits at every token."""

    def __init__(self, scheme: Any, shape: Shape, key: PRNGKeyArray):
        self.input, self.shape = only_input(scheme, shape), shape
        width = shape.dims.width
        inner = lambda rngs: rngs.params.normal((width, width)) * (2 / width) ** 0.5  # noqa: E731
        weights, outer = cut([(inner, shape.depth), (self._outer, None)], key)
        self.inner, self.bias = Weight(weights), nnx.Param(jnp.zeros((shape.depth, width)))
        self._set_outer(*outer)

    def __call__(self, inputs: Inputs, key: PRNGKeyArray, *, train: bool = False) -> Float[Array, "B T classes"]:
        """Padding does not count. `key` draws random positions and dropout."""
        drop = dropout(self.shape.dropout, key, train)
        x = self.enter(inputs, key, train)
        x = drop.at("attention")(mean(x, inputs.valid, self.shape.dims.causal))

        def layer(x, turn):
            n, w, b = turn
            return drop.at("layer", n)(jax.nn.relu(x @ w.astype(x.dtype) + b.astype(x.dtype)[None, None])), None

        turns = jnp.arange(self.shape.depth), self.inner.get_value(), self.bias.get_value()
        return self.leave(jax.lax.scan(layer, x, turns)[0])


def mean(x: Float[Array, "B T D"], valid: Bool[Array, "B T"], causal: bool) -> Float[Array, "B T D"]:
    """The mean of the real tokens visible to each token; zero where there are none."""
    exact = jnp.where(valid[..., None], x, 0).astype(bias_dtype(x))
    total, count = exact.cumsum(1), valid.cumsum(1)
    if not causal:
        total, count = (jnp.broadcast_to(a[:, -1:], a.shape) for a in (total, count))
    return (total / jnp.maximum(count, 1)[..., None]).astype(x.dtype)
