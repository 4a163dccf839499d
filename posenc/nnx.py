"""Attention as a Flax NNX module: the one jit-compiled module, for our models and for yours.

The module is a plain pytree: use `jax.jit`, `jax.vmap`, `jax.grad` and `jax.lax.scan` on it, no `nnx.*` transform.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from einops import rearrange
from flax import nnx
from jaxtyping import Array, Float

from posenc.attention import attend
from posenc.cache import Cache
from posenc.compose import bare
from posenc.masks import Mask
from posenc.parameters import init, join, split
from posenc.scheme import Dims


class Attention(nnx.Module):
    """Multi-head self-attention under a scheme: `[..., L, width] -> [..., L, width]` (Vaswani et al., 2017, §3.2.2).

    `rngs` gives a key and normal draws: an `nnx.Rngs`. Where a scheme does not divide by √d (T5), query weights are
    drawn smaller, so that scores start alike under every scheme. With `tied=False` the parameters that layers share
    are left out and come with each call.
    """

    def __init__(self, scheme: Any, dims: Dims, *, rngs: Any, embedded: bool = False, tied: bool = True):
        plain = bare(scheme)
        if plain.overrides("embed") and not embedded:
            raise ValueError(
                "This scheme acts on the input, which attention does not see; call posenc.embed on the input of the "
                "first layer and say so with embedded=True."
            )
        groups = dims.key_heads or dims.heads
        start = dims.head**-0.5 / plain.scale(dims.head)
        self.scheme, self.dims = scheme, dims
        self.query = nnx.Param(_draw(rngs, dims.width, dims.heads * dims.head) * start)
        self.key_value = nnx.Param(_draw(rngs, dims.width, 2 * groups * dims.head))
        self.out = nnx.Param(_draw(rngs, dims.heads * dims.head, dims.width))
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
        mask = ("causal" if self.dims.causal else "full") if mask is None else mask
        return _attention(self, x, positions, segments, tied, cache, mask=mask, kernel=kernel)

    def empty(self, *, batch: int, capacity: int, dtype: Any = jnp.float32) -> Cache:
        """A cache for this layer."""
        return Cache.empty(
            self.scheme, self.position.get_value(), self.dims, batch=batch, capacity=capacity, dtype=dtype
        )


@functools.partial(jax.jit, static_argnames=("mask", "kernel"))
def _attention(layer: Attention, x, positions, segments, tied, cache, *, mask, kernel):
    query, key_value, out = (w.get_value().astype(x.dtype) for w in (layer.query, layer.key_value, layer.out))
    q = rearrange(x @ query, "... l (h d) -> ... l h d", h=layer.dims.heads)
    k, v = rearrange(x @ key_value, "... l (n g d) -> n ... l g d", n=2, d=layer.dims.head)
    own = layer.position.get_value()
    params = own if tied is None else join(tied, own)
    about = {"x": x, "positions": positions, "segments": segments, "mask": mask, "kernel": kernel}
    if cache is None:
        return rearrange(attend(layer.scheme, params, q, k, v, **about), "... l h d -> ... l (h d)") @ out
    o, cache = attend(layer.scheme, params, q, k, v, cache=cache, **about)
    return rearrange(o, "... l h d -> ... l (h d)") @ out, cache


def _draw(rngs: Any, fan_in: int, fan_out: int) -> Float[Array, "i o"]:
    return rngs.params.normal((fan_in, fan_out)) * fan_in**-0.5
