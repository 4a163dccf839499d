"""Convolutions instead of attention: neighbouring tokens are mixed with weights that depend on the distance alone.

    x'_t = x_t + relu(Σ_{n<k} W_{k-1-n} norm(x)_{t-n} + b)

Taps are in the order of the sequence (Bai et al., 2018). In a bidirectional model they are centred on the token, with
the odd tap in the past. Beyond the ends, and at padding, there are zeros. After d layers a token depends on d (k - 1)
others. Gehring et al. (2017) gate the added term, and Bai et al. dilate the taps from layer to layer; neither is done
here.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from posenc.lab.models.draws import cut
from posenc.lab.models.ends import Ends, only_input
from posenc.lab.models.interface import Inputs, Shape
from posenc.lab.models.parts import NO_DROPOUT, Dropout, dropout, normalise
from posenc.lab.models.weights import Weight


class ConvolutionLayer(nnx.Module):
    """One convolution of all features, added to its input."""

    def __init__(self, shape: Shape, *, rngs: Any):
        k, width = shape.model.k, shape.dims.width
        self.before = k - 1 if shape.dims.causal else k // 2
        self.filters = Weight(rngs.params.normal((k, width, width)) * (k * width) ** -0.5)
        self.bias, self.scale = nnx.Param(jnp.zeros(width)), nnx.Param(jnp.ones(width))

    def __call__(
        self, x: Float[Array, "B T D"], valid: Bool[Array, "B T"], drop: Dropout = NO_DROPOUT
    ) -> Float[Array, "B T D"]:
        filters, bias = (a.get_value().astype(x.dtype) for a in (self.filters, self.bias))
        k, length = filters.shape[0], x.shape[1]
        inside = jnp.where(valid[..., None], normalise(x, self.scale.get_value()), 0)
        wide = jnp.pad(inside, ((0, 0), (self.before, k - 1 - self.before), (0, 0)))
        windows = jnp.stack([wide[:, n : n + length] for n in range(k)], 2)
        return x + drop(jax.nn.relu(jnp.einsum("btkd,kde->bte", windows, filters) + bias[None, None]))


class Convolution(Ends):
    """Tokens to logits at every token, by `shape.depth` layers and a norm after the last."""

    def __init__(self, scheme: Any, shape: Shape, key: PRNGKeyArray):
        self.input, self.shape = only_input(scheme, shape), shape
        self.blocks, outer = cut(
            [(lambda rngs: ConvolutionLayer(shape, rngs=rngs), shape.depth), (self._outer, None)], key
        )
        self._set_outer(*outer)
        self.scale = nnx.Param(jnp.ones(shape.dims.width))

    def __call__(self, inputs: Inputs, key: PRNGKeyArray, *, train: bool = False) -> Float[Array, "B T classes"]:
        """Padding affects no other token. `key` draws random positions and dropout."""
        drop = dropout(self.shape.dropout, key, train)
        x = self.enter(inputs, key, train)

        def layer(x, turn):
            n, block = turn
            return block(x, inputs.valid, drop.at("layer", n)), None

        x, _ = jax.lax.scan(layer, x, (jnp.arange(self.shape.depth), self.blocks))
        return self.leave(normalise(x, self.scale.get_value()))
