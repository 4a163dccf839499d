"""Attention as a Flax Linen module, for models written in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from posenc.adapters.foreign import attention_fn as attention_fn
from posenc.adapters.multihead import Weights, check_layer, draw, first_sinks, multihead, whole_params
from posenc.attention.cache import Cache
from posenc.core.masks import Mask
from posenc.core.parameters import init, split
from posenc.core.scheme import Dims
from posenc.naming import bind

try:
    from flax import linen
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "posenc.linen needs Flax; run `pip install 'posenc[lab]'`, or `pip install flax`."
    ) from error


class Attention(linen.Module):
    """Multi-head self-attention under a scheme: `[..., L, width] -> [..., L, width]` (Vaswani et al., 2017, §3.2.2).

    `scheme` may be a text, and is bound to `dims`. The variables are `params/{weights, position}`; `position` is what
    `posenc.init` gives. A scheme that acts on the input is refused unless `embedded`. With `tied=False` the parameters
    that layers share are left out and come with each call. `scale` and `cap` are those of `posenc.attend`; with `sinks`
    the layer learns a score for each head of one more key, without a value, `params/sinks`. `product` multiplies tokens
    by the weights of a projection. Raises `ValueError` or `TypeError` where scheme or sizes cannot serve.
    """

    scheme: Any
    dims: Dims
    embedded: bool = False
    tied: bool = True
    scale: float | None = None
    cap: float | None = None
    sinks: bool = False
    product: Callable[[Array, Array], Array] = jnp.matmul

    def __post_init__(self):
        self.scheme = bind(self.scheme, self.dims)
        super().__post_init__()

    @linen.compact
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
        check_layer(self.scheme, self.dims, self.embedded, self.scale, self.cap, self.sinks)
        # a shape, which no start reads, is what some libraries let `param` ask for
        weights = self.param("weights", self._init_weights, ())
        position = None  # files of named arrays drop what is empty
        if self.is_initializing() or self.has_variable("params", "position"):
            position = self.param("position", self._init_position, ())
        return multihead(
            Weights(**weights),
            position,
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
            sinks=self.param("sinks", self._init_sinks, ()) if self.sinks else None,
            dropout=dropout,
            dropout_key=dropout_key,
        )

    def _init_weights(self, key, _, dtype: Any = None) -> dict[str, Array]:
        keys = iter(jax.random.split(key, len(Weights._fields)))
        return _cast(draw(self.scheme, self.dims, lambda shape: jax.random.normal(next(keys), shape))._asdict(), dtype)

    def _init_position(self, key, _, dtype: Any = None) -> Any:
        own = init(self.scheme, key, self.dims)
        return _cast(own if self.tied else split(self.scheme, own)[1], dtype)

    def _init_sinks(self, key, _, dtype: Any = None) -> Array:
        return _cast(first_sinks(self.dims), dtype)

    def empty(
        self,
        variables: Any,
        *,
        batch: int,
        capacity: int,
        dtype: Any = jnp.float32,
        positions: Any = jnp.int32,
        ring: bool = False,
        tied: Any = None,
    ) -> Cache:
        """A cache for this layer under the variables that `init` gave: `batch` sequences of at most `capacity` tokens.

        `dtype` is that of `x`, `positions` that of the positions to come, `tied` is as in a call, and `ring`, for
        attention in a window, as in `posenc.Cache.empty`, which says what is raised.
        """
        try:
            held = variables["params"]
            own = None if "weights" in held and "position" not in held else held["position"]
        except (KeyError, TypeError, IndexError):
            raise ValueError("variables hold no params/position; give those that this layer's init gave.") from None
        params = whole_params(self.scheme, tied, own)
        arguments = {"batch": batch, "capacity": capacity, "dtype": dtype, "positions": positions, "ring": ring}
        return Cache.empty(self.scheme, params, self.dims, **arguments)


def _cast(params: Any, dtype: Any) -> Any:
    """Parameters in the type that was asked for, if one was."""
    return params if dtype is None else jax.tree.map(lambda a: a.astype(dtype), params)
