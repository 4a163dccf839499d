"""Attention as a Flax Linen module, for models written in it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen
from jaxtyping import Array, Float

from posenc.cache import Cache
from posenc.masks import Mask
from posenc.multihead import Weights, check_input, draw, multihead
from posenc.parameters import init
from posenc.scheme import Dims


class Attention(linen.Module):
    """Multi-head self-attention under a scheme: `[..., L, width] -> [..., L, width]` (Vaswani et al., 2017, §3.2.2).

    Its variables are `params/{weights, position}`; `position` is what `posenc.init` gives. A scheme that acts on the
    input is refused unless `embedded`.
    """

    scheme: Any
    dims: Dims
    embedded: bool = False

    @linen.compact
    def __call__(
        self,
        x: Float[Array, "*batch L width"],
        *,
        positions: Any = None,
        segments: Any = None,
        mask: Mask | None = None,
        kernel: str = "auto",
        cache: Cache | None = None,
    ) -> Any:
        """The mixed tokens, and with a `cache` that cache with the new tokens in it. Arguments as `posenc.attend`'s."""
        check_input(self.scheme, self.embedded)
        weights = self.param("weights", self._drawn)
        position = self.param("position", lambda key: init(self.scheme, key, self.dims))
        return multihead(
            Weights(**weights),
            position,
            x,
            scheme=self.scheme,
            dims=self.dims,
            positions=positions,
            segments=segments,
            cache=cache,
            mask=mask,
            kernel=kernel,
        )

    def _drawn(self, key) -> dict[str, Array]:
        keys = iter(jax.random.split(key, len(Weights._fields)))
        return draw(self.scheme, self.dims, lambda shape: jax.random.normal(next(keys), shape))._asdict()

    def empty(self, variables: Any, *, batch: int, capacity: int, dtype: Any = jnp.float32) -> Cache:
        """A cache for this layer under the variables that `init` gave."""
        position = variables["params"]["position"]
        return Cache.empty(self.scheme, position, self.dims, batch=batch, capacity=capacity, dtype=dtype)
