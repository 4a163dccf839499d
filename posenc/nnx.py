"""Attention as a Flax NNX module: the one jit-compiled module, for our models and for yours.

The module is a plain pytree: `jax.jit`, `jax.vmap`, `jax.grad` and `jax.lax.scan` take it as the transforms of NNX do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from posenc.adapters import foreign
from posenc.adapters.multihead import Weights, check_layer, draw, first_sinks, multihead, whole_params
from posenc.attention.cache import Cache
from posenc.core.masks import Mask
from posenc.core.parameters import init, split
from posenc.core.scheme import Dims
from posenc.naming import bind

try:
    from flax import nnx
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "posenc.nnx needs Flax; run `pip install 'posenc[lab]'`, or `pip install flax`."
    ) from error


def attention_fn(scheme: Any, params: Any = None, *, sinks: Any = None, **arguments: Any) -> Any:
    """The `attention_fn` of `nnx.MultiHeadAttention`: `posenc.attend` under this scheme, trained with the layer.

    Arguments, and what is raised, are those of `posenc.linen.attention_fn`. With `params` or `sinks` it is an
    `nnx.Module` that holds them, an `nnx.Param` for each array.
    """
    plain = functools.partial(foreign.attention_fn, scheme, sown=nnx.Intermediate, **arguments)
    made = plain(params, sinks=sinks)
    return made if params is None and sinks is None else _Trained(plain, params, sinks)


class _Trained(nnx.Module):
    """An `attention_fn` with its parameters."""

    def __init__(self, plain: Any, params: Any, sinks: Any):
        self.plain = plain
        self.position = nnx.data(jax.tree.map(nnx.Param, params))
        self.sinks = None if sinks is None else nnx.Param(sinks)

    def __call__(self, query: Array, key: Array, value: Array, **passed: Any) -> Array:
        return self.plain(nnx.as_pure(self.position), sinks=nnx.as_pure(self.sinks))(query, key, value, **passed)


class Attention(nnx.Module):
    """Multi-head self-attention under a scheme: `[..., L, width] -> [..., L, width]` (Vaswani et al., 2017, §3.2.2).

    `scheme` may be a text, and is bound to `dims`. `rngs` gives a key and normal draws: an `nnx.Rngs`. `position` holds
    what `posenc.init` gives, an `nnx.Param` for each array. A scheme that acts on the input is refused unless
    `embedded`. With `tied=False` the parameters that layers share are left out and come with each call. `scale` and
    `cap` are those of `posenc.attend`; with `sinks` the layer learns a score for each head of one more key, without a
    value. `product` multiplies tokens by the weights of a projection. Raises `ValueError` or `TypeError` where scheme,
    sizes or `rngs` cannot serve.
    """

    def __init__(
        self,
        scheme: Any,
        dims: Dims,
        *,
        rngs: Any,
        embedded: bool = False,
        tied: bool = True,
        scale: float | None = None,
        cap: float | None = None,
        sinks: bool = False,
        product: Callable[[Array, Array], Array] = jnp.matmul,
    ):
        scheme = bind(scheme, dims)
        check_layer(scheme, dims, embedded, scale, cap, sinks)
        if not hasattr(rngs, "params"):
            raise TypeError(f"rngs is of type {type(rngs).__name__}; give nnx.Rngs(0), which draws weights.")
        self.scheme, self.dims, self.scale, self.cap, self.product = scheme, dims, scale, cap, product
        self.query, self.key_value, self.out = map(nnx.Param, draw(scheme, dims, rngs.params.normal))
        own = init(scheme, rngs.params(), dims)
        # one Param for each array: nnx.Optimizer cannot take a second step over a Param that holds a dict
        self.position = nnx.data(jax.tree.map(nnx.Param, own if tied else split(scheme, own)[1]))
        self.sinks = nnx.Param(first_sinks(dims)) if sinks else None

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
        weights = Weights(*(w.get_value() for w in (self.query, self.key_value, self.out)))
        return multihead(
            weights,
            nnx.as_pure(self.position),
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
            sinks=nnx.as_pure(self.sinks),
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
        params = whole_params(self.scheme, tied, nnx.as_pure(self.position))
        arguments = {"batch": batch, "capacity": capacity, "dtype": dtype, "positions": positions, "ring": ring}
        return Cache.empty(self.scheme, params, self.dims, **arguments)
