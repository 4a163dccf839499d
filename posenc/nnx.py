"""Attention as a Flax NNX module: the one jit-compiled module, for our models and for yours.

The module is a plain pytree: use `jax.jit`, `jax.vmap`, `jax.grad` and `jax.lax.scan` on it, no `nnx.*` transform.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from posenc.cache import Cache
from posenc.masks import Mask
from posenc.multihead import Weights, check_input, draw, multihead
from posenc.parameters import init, split
from posenc.scheme import Dims


class Attention(nnx.Module):
    """Multi-head self-attention under a scheme: `[..., L, width] -> [..., L, width]` (Vaswani et al., 2017, §3.2.2).

    `rngs` gives a key and normal draws: an `nnx.Rngs`. A scheme that acts on the input is refused unless `embedded`.
    With `tied=False` the parameters that layers share are left out and come with each call.
    """

    def __init__(self, scheme: Any, dims: Dims, *, rngs: Any, embedded: bool = False, tied: bool = True):
        check_input(scheme, embedded)
        self.scheme, self.dims = scheme, dims
        self.query, self.key_value, self.out = map(nnx.Param, draw(scheme, dims, rngs.params.normal))
        own = init(scheme, rngs.params(), dims)
        self.position = nnx.Param(own if tied else split(scheme, own)[1])

    def __call__(
        self,
        x: Float[Array, "*batch L width"],
        *,
        positions: Any = None,
        segments: Any = None,
        mask: Mask | None = None,
        tied: Any = None,
        kernel: str = "auto",
        cache: Cache | None = None,
    ) -> Any:
        """The mixed tokens, and with a `cache` that cache with the new tokens in it. Arguments as `posenc.attend`'s."""
        weights = Weights(*(w.get_value() for w in (self.query, self.key_value, self.out)))
        return multihead(
            weights,
            self.position.get_value(),
            x,
            scheme=self.scheme,
            dims=self.dims,
            positions=positions,
            segments=segments,
            tied=tied,
            cache=cache,
            mask=mask,
            kernel=kernel,
        )

    def empty(self, *, batch: int, capacity: int, dtype: Any = jnp.float32) -> Cache:
        """A cache for this layer."""
        return Cache.empty(
            self.scheme, self.position.get_value(), self.dims, batch=batch, capacity=capacity, dtype=dtype
        )
