"""Attention as a Flax NNX module: the one jit-compiled module, for our models and for yours.

The module is a plain pytree: use `jax.jit`, `jax.vmap`, `jax.grad` and `jax.lax.scan` on it, no `nnx.*` transform.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from posenc.adapters.foreign import attention_fn as attention_fn
from posenc.adapters.multihead import Weights, check_layer, draw, multihead
from posenc.attention.cache import Cache
from posenc.core.masks import Mask
from posenc.core.parameters import init, join, split
from posenc.core.scheme import Dims

try:
    from flax import nnx
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "posenc.nnx needs Flax; run `pip install 'posenc[lab]'`, or `pip install flax`."
    ) from error


class Attention(nnx.Module):
    """Multi-head self-attention under a scheme: `[..., L, width] -> [..., L, width]` (Vaswani et al., 2017, §3.2.2).

    `rngs` gives a key and normal draws: an `nnx.Rngs`. A scheme that acts on the input is refused unless `embedded`.
    With `tied=False` the parameters that layers share are left out and come with each call. Raises `ValueError` or
    `TypeError` where scheme, sizes or `rngs` cannot serve.
    """

    def __init__(self, scheme: Any, dims: Dims, *, rngs: Any, embedded: bool = False, tied: bool = True):
        check_layer(scheme, dims, embedded)
        if not hasattr(rngs, "params"):
            raise TypeError(f"rngs is of type {type(rngs).__name__}; give nnx.Rngs(0), which draws weights.")
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
        """The mixed tokens `[..., L, width]`, and with a `cache` that cache with the new tokens in it.

        `mask=None` is "causal" or "full" as `dims.causal` says. `tied` are the parameters that layers share, of a layer
        made without them. The others are `posenc.attend`'s, and what does not fit is refused as there.
        """
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

    def empty(
        self,
        *,
        batch: int,
        capacity: int,
        dtype: Any = jnp.float32,
        positions: Any = jnp.int32,
        ring: bool = False,
        tied: Any = None,
    ) -> Cache:
        """A cache for this layer: `batch` sequences of at most `capacity` tokens of the type `dtype`, that of `x`.

        `positions` is the type of the positions to come, `tied` is as in a call, and `ring`, for attention in a window,
        as in `posenc.Cache.empty`, which says what is raised.
        """
        own = self.position.get_value()
        params = own if tied is None else join(tied, own)
        about = {"batch": batch, "capacity": capacity, "dtype": dtype, "positions": positions, "ring": ring}
        return Cache.empty(self.scheme, params, self.dims, **about)
