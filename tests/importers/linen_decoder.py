"""A language model in Flax Linen as nanodo and flax's LM1B example are, with posenc in the place of its attention.

A decoder alone (Liu et al., 2018, Generating Wikipedia by Summarizing Long Sequences, §4.2.3) whose blocks normalise
before each part (Radford et al., 2019, Language Models are Unsupervised Multitask Learners, §2.3; Xiong et al., 2020,
On Layer Normalization in the Transformer Architecture, §3.2), and whose readout is the embedding of the tokens (Press
and Wolf, 2017). The attention is `posenc.attend` on queries, keys and values of the model's own, and each layer owns
the parameters of its scheme.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen

import posenc


class Block(linen.Module):
    """One layer: x + attention(norm(x)), then x + mlp(norm(x))."""

    scheme: Any
    dims: posenc.Dims
    dtype: Any

    @linen.compact
    def __call__(self, x: Any, cache: Any = None) -> tuple[Any, Any]:
        sizes, kind = self.dims, {"use_bias": False, "dtype": self.dtype, "param_dtype": self.dtype}
        h = linen.LayerNorm(**kind)(x)
        project = lambda name: linen.DenseGeneral((sizes.heads, sizes.head), name=name, **kind)(h)  # noqa: E731
        q, k, v = map(project, ("query", "key", "value"))
        position = self.param("position", lambda key: posenc.init(self.scheme, key, sizes))
        mixed = posenc.attend(self.scheme, position, q, k, v, x=h, cache=cache)
        mixed, cache = (mixed, None) if cache is None else mixed
        x = x + linen.DenseGeneral(sizes.width, axis=(-2, -1), name="out", **kind)(mixed)
        h = linen.gelu(linen.Dense(4 * sizes.width, name="up", **kind)(linen.LayerNorm(**kind)(x)))
        return x + linen.Dense(sizes.width, name="down", **kind)(h), cache


class Period(linen.Module):
    """The layers of one period of a pattern; one layer where every layer has the same scheme."""

    schemes: tuple[Any, ...]
    dims: posenc.Dims
    remat: bool
    dtype: Any

    @linen.compact
    def __call__(self, x: Any, caches: Any = None) -> tuple[Any, Any]:
        block, longer = linen.remat(Block) if self.remat else Block, []
        for n, scheme in enumerate(self.schemes):
            x, cache = block(scheme, self.dims, self.dtype, name=f"layer_{n}")(x, None if caches is None else caches[n])
            longer.append(cache)
        return x, None if caches is None else tuple(longer)


class Decoder(linen.Module):
    """Tokens `[B, L]` to logits `[B, L, words]`, and with `caches` those with the new tokens in them.

    `scheme` may be a pattern of `period` layers. `caches` are as `empty` makes them, the periods along the first axis.
    `positions` are those of the new tokens, which an input scheme needs in decoding.
    """

    scheme: Any
    dims: posenc.Dims
    words: int
    depth: int = 4
    period: int = 1
    scan: bool = True
    remat: bool = False
    dtype: Any = jnp.float32

    @linen.compact
    def __call__(self, tokens: Any, caches: Any = None, positions: Any = None) -> Any:
        embedding = linen.Embed(self.words, self.dims.width, dtype=self.dtype, param_dtype=self.dtype, name="tokens")
        x = embedding(tokens)
        if (before := posenc.input_scheme(self.scheme)) is not None:
            table = self.param("position", lambda key: posenc.init(before, key, self.dims))
            x = posenc.embed(before, table, x, positions=positions)
        x, caches = (self.scanned if self.scan else self.looped)(x, caches)
        norm = linen.LayerNorm(use_bias=False, dtype=self.dtype, param_dtype=self.dtype, name="norm")
        logits = embedding.attend(norm(x))
        return logits if caches is None else (logits, caches)

    def scanned(self, x: Any, caches: Any) -> tuple[Any, Any]:
        """All periods in one compiled loop, their parameters stacked."""
        scan = linen.scan(
            Period, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.depth // self.period
        )
        return scan(*self.of_period(), name="periods")(x, caches)

    def looped(self, x: Any, caches: Any) -> tuple[Any, Any]:
        """One period after the other."""
        longer = []
        for n in range(self.depth // self.period):
            x, cache = Period(*self.of_period(), name=f"period_{n}")(x, jax.tree.map(lambda a, n=n: a[n], caches))
            longer.append(cache)
        return x, None if caches is None else jax.tree.map(lambda *a: jnp.stack(a), *longer)

    def of_period(self) -> tuple[Any, ...]:
        return tuple(posenc.layer(self.scheme, n) for n in range(self.period)), self.dims, self.remat, self.dtype

    def empty(self, params: Any, batch: int, capacity: int) -> Any:
        """Caches for all layers, of a model that scans them."""

        def of(layer: int) -> Any:
            position = params["periods"][f"layer_{layer}"]["position"]
            sizes = {"batch": batch, "capacity": capacity, "dtype": self.dtype}
            one = lambda own: posenc.Cache.empty(posenc.layer(self.scheme, layer), own, self.dims, **sizes)  # noqa: E731
            return jax.vmap(one, axis_size=self.depth // self.period)(position)

        return tuple(map(of, range(self.period)))
