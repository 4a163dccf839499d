"""The Transformer we train, encoder or decoder, under any scheme or pattern of schemes (Vaswani et al., 2017).

Layers are stacked by period and run by one scan; parameters that layers share are held once and closed over.
Randomness enters as a key, which draws random positions and dropout.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from posenc.attention.cache import Cache
from posenc.lab.models.attentions import query_factor, with_attention
from posenc.lab.models.draws import cut
from posenc.lab.models.interface import Inputs, Shape
from posenc.lab.models.parts import NO_DROPOUT, Dropout, linear, normalise
from posenc.lab.models.stack import Stack
from posenc.lab.models.weights import Weight, positional
from posenc.nnx import Attention


class Block(nnx.Module):
    """One layer: attention, then a feed-forward layer, each with a residual connection and a norm before or after."""

    def __init__(self, scheme: Any, shape: Shape, *, rngs: Any):
        width, hidden = shape.dims.width, shape.hidden
        composed = with_attention(shape.attention, scheme, shape.dims)
        self.norm = shape.norm
        apart = {"embedded": True, "tied": False}  # the model applies the input scheme and holds what layers share
        self.attention = attention = Attention(composed, shape.dims, rngs=rngs, product=linear, **apart)
        attention.query = Weight(attention.query.get_value() * query_factor(scheme, composed, shape.dims))
        attention.key_value, attention.out = (Weight(w.get_value()) for w in (attention.key_value, attention.out))
        attention.position = positional(composed, nnx.as_pure(attention.position))
        self.up = Weight(rngs.params.normal((width, hidden)) * width**-0.5)
        self.down = Weight(rngs.params.normal((hidden, width)) * hidden**-0.5)
        self.scales = nnx.Param(jnp.ones((2, width)))

    def __call__(
        self, x: Float[Array, "B T D"], *, drop: Dropout = NO_DROPOUT, cache: Cache | None = None, **arguments: Any
    ) -> Any:
        """The tokens after this layer; with a `cache`, also that cache with the new tokens added."""
        x, kept = self.attend(x, drop, cache, **arguments)
        x = self.feed(x, drop)
        return x if cache is None else (x, kept)

    def attend(self, x: Float[Array, "B T D"], drop: Dropout, cache: Cache | None, **arguments: Any) -> Any:
        """The first half: attention with its residual connection."""
        mixed = self.attention(self.before(x, 0), cache=cache, **arguments)
        mixed, cache = (mixed, None) if cache is None else mixed
        return self.after(x + drop.at("attention")(mixed), 0), cache

    def feed(self, x: Float[Array, "B T D"], drop: Dropout) -> Float[Array, "B T D"]:
        """The second half: the feed-forward layer with its residual connection."""
        hidden = jax.nn.relu(linear(self.before(x, 1), self.up.get_value()))
        return self.after(x + drop.at("feed")(linear(hidden, self.down.get_value())), 1)

    def before(self, x, n):
        return normalise(x, self.scales.get_value()[n]) if self.norm == "pre" else x

    def after(self, x, n):
        return normalise(x, self.scales.get_value()[n]) if self.norm == "post" else x


class Transformer(Stack):
    """Tokens to logits at every token: `[B, T] -> [B, T, classes]`."""

    def __init__(self, scheme: Any, shape: Shape, key: PRNGKeyArray):
        super().__init__(scheme, shape)
        self.set_parameters(cut(self.builders(lambda i, rngs: Block(self.plain[i], shape, rngs=rngs)), key))

    def __call__(self, inputs: Inputs, key: PRNGKeyArray, *, train: bool = False) -> Float[Array, "B T classes"]:
        """Padding affects no other token. `key` draws random positions and dropout."""
        return self.leave(self.states(inputs, key, train=train)[0])

    def begin(self, inputs: Inputs, key: PRNGKeyArray, most: int) -> tuple[Cache, ...]:
        """Empty caches, for generation: see `posenc.lab.models.interface`."""
        return self.caches(inputs, key, most)

    def proceed(
        self, caches: tuple[Cache, ...], inputs: Inputs, key: PRNGKeyArray, first: Any, new: int
    ) -> tuple[Float[Array, "B new classes"], tuple[Cache, ...]]:
        """The logits of `new` tokens from `first` on, and the caches with them."""
        x, caches = self.states(inputs, key, new=(first, new), states=caches)
        return self.leave(x), caches
