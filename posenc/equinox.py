"""Attention as an Equinox module, and the hook of Equinox's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from posenc.adapters.foreign import process_heads as process_heads
from posenc.adapters.multihead import Weights, check_layer, draw, first_sinks, multihead, whole_params
from posenc.attention.cache import Cache
from posenc.core.masks import Mask
from posenc.core.parameters import check_key, init, split
from posenc.core.scheme import Dims
from posenc.naming import bind

try:
    import equinox
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("posenc.equinox needs Equinox; run `pip install equinox`.") from error


class Attention(equinox.Module):
    """Multi-head self-attention under a scheme: `[..., L, width] -> [..., L, width]` (Vaswani et al., 2017, §3.2.2).

    `scheme` may be a text, and is bound to `dims`. Batch axes may lead, or be mapped by `jax.vmap`. A scheme that acts
    on the input is refused unless `embedded`. With `tied=False` the parameters that layers share are left out and come
    with each call. `scale` and `cap` are those of `posenc.attend`; with `sinks` the layer learns a score for each head
    of one more key, without a value. `product` multiplies tokens by the weights of a projection. Raises `ValueError` or
    `TypeError` where scheme, sizes or `key` cannot serve.
    """

    weights: Weights
    position: Any
    sinks: Float[Array, " H"] | None
    scheme: Any = equinox.field(static=True)
    dims: Dims = equinox.field(static=True)
    scale: float | None = equinox.field(static=True)
    cap: float | None = equinox.field(static=True)
    product: Callable[[Array, Array], Array] = equinox.field(static=True)

    def __init__(
        self,
        scheme: Any,
        dims: Dims,
        *,
        key: PRNGKeyArray,
        embedded: bool = False,
        tied: bool = True,
        scale: float | None = None,
        cap: float | None = None,
        sinks: bool = False,
        product: Callable[[Array, Array], Array] = jnp.matmul,
    ):
        scheme = bind(scheme, dims)
        check_layer(scheme, dims, embedded, scale, cap, sinks)
        check_key("key", key)
        keys = iter(jax.random.split(key, len(Weights._fields) + 1))
        own = init(scheme, next(keys), dims)
        self.weights = draw(scheme, dims, lambda shape: jax.random.normal(next(keys), shape))
        self.position = own if tied else split(scheme, own)[1]
        self.sinks = first_sinks(dims) if sinks else None
        self.scheme, self.dims, self.scale, self.cap, self.product = scheme, dims, scale, cap, product

    def __call__(
        self,
        x: Float[Array, "*batch L width"],
        *,
        positions: Any = None,
        segments: Any = None,
        mask: Mask | Literal["dims"] = "dims",
        tied: Any = None,
        kernel: str = "auto",
        cache: Cache | None = None,
        dropout: float = 0.0,
        dropout_key: Any = None,
    ) -> Any:
        """The mixed tokens `[..., L, width]`, and with a `cache` that cache with the new tokens in it.

        `mask="dims"` is "causal" or "full" as `dims.causal` says. `tied` are the parameters that layers share, of a
        layer made without them. A share `dropout` of the weights is dropped by `dropout_key`, in calls that get both.
        The others are `posenc.attend`'s, and what does not fit is refused as there.
        """
        return multihead(
            self.weights,
            self.position,
            x,
            scheme=self.scheme,
            dims=self.dims,
            positions=positions,
            segments=segments,
            tied=tied,
            cache=cache,
            mask=mask,
            kernel=kernel,
            product=self.product,
            scale=self.scale,
            cap=self.cap,
            sinks=self.sinks,
            dropout=dropout,
            dropout_key=dropout_key,
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
        params = whole_params(self.scheme, tied, self.position)
        arguments = {"batch": batch, "capacity": capacity, "dtype": dtype, "positions": positions, "ring": ring}
        return Cache.empty(self.scheme, params, self.dims, **arguments)
