"""A language model in Flax NNX as flax's Gemma example is, with posenc in the place of its attention.

Gemma (Gemma Team, 2024, Open Models Based on Gemini Research and Technology, §2): few key heads (Shazeer, 2019; Ainslie
et al., 2023), GeGLU (Shazeer, 2020), RMSNorm before each part (Zhang and Sennrich, 2019), and one embedding for input
and readout, the input times √width. Gemma 2 (2024, §2) gives its scores a scale and a soft cap, and half of its layers
a window, `[rope + window(4096), rope]`. The attention is `posenc.nnx.Attention`; what the layers of a scheme share,
such as T5's table, the model holds once.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

import posenc
import posenc.nnx


class Block(nnx.Module):
    """One layer: x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, scheme: Any, dims: posenc.Dims, weighting: Any, *, dtype: Any, rngs: nnx.Rngs):
        kind = {"dtype": dtype, "param_dtype": dtype, "rngs": rngs}
        self.attention = posenc.nnx.Attention(scheme, dims, rngs=rngs, tied=False, **weighting)
        self.before_attention, self.before_mlp = (nnx.RMSNorm(dims.width, epsilon=1e-6, **kind) for _ in range(2))
        self.gate, self.up = (nnx.Linear(dims.width, 4 * dims.width, use_bias=False, **kind) for _ in range(2))
        self.down = nnx.Linear(4 * dims.width, dims.width, use_bias=False, **kind)

    def __call__(self, x: Any, tied: Any, cache: Any = None) -> tuple[Any, Any]:
        mixed = self.attention(self.before_attention(x), tied=tied, cache=cache)
        mixed, cache = (mixed, None) if cache is None else mixed
        x = x + mixed
        h = self.before_mlp(x)
        return x + self.down(nnx.gelu(self.gate(h)) * self.up(h)), cache


class Period(nnx.Module):
    """The layers of one period of a pattern; one layer where every layer has the same scheme."""

    def __init__(
        self, schemes: tuple[Any, ...], dims: posenc.Dims, weighting: Any, *, remat: bool, dtype: Any, rngs: nnx.Rngs
    ):
        self.blocks = nnx.List([Block(scheme, dims, weighting, dtype=dtype, rngs=rngs) for scheme in schemes])
        self.remat = remat

    def __call__(self, x: Any, tied: tuple[Any, ...], caches: Any = None) -> tuple[Any, Any]:
        run, longer = nnx.remat(Block.__call__) if self.remat else Block.__call__, []
        for n, block in enumerate(self.blocks):
            x, cache = run(block, x, tied[n], None if caches is None else caches[n])
            longer.append(cache)
        return x, None if caches is None else tuple(longer)


class Gemma(nnx.Module):
    """Tokens `[B, L]` to logits `[B, L, words]`, and with `caches` those with the new tokens in them.

    `scheme` may be a pattern of `period` layers. Its periods are stacked, and run by `nnx.scan`, or one after the other
    with `scan=False`. `weighting` is the scale and the cap of attention. `caches` are as `empty` makes them, with the
    periods along the first axis.
    """

    def __init__(
        self,
        scheme: Any,
        dims: posenc.Dims,
        words: int,
        *,
        depth: int = 4,
        period: int = 1,
        scan: bool = True,
        remat: bool = False,
        dtype: Any = jnp.float32,
        rngs: nnx.Rngs,
        **weighting: Any,
    ):
        schemes = tuple(posenc.layer(scheme, n) for n in range(period))
        shared = [posenc.split(s, posenc.init(s, rngs.params(), dims))[0] for s in schemes]
        self.tied = nnx.data(jax.tree.map(nnx.Param, tuple(shared)))
        self.embedding = nnx.Embed(words, dims.width, dtype=dtype, param_dtype=dtype, rngs=rngs)

        @nnx.split_rngs(splits=depth // period)
        @nnx.vmap
        def stacked(rngs: nnx.Rngs) -> Period:
            return Period(schemes, dims, weighting, remat=remat, dtype=dtype, rngs=rngs)

        self.periods = stacked(rngs)
        self.norm = nnx.RMSNorm(dims.width, epsilon=1e-6, dtype=dtype, param_dtype=dtype, rngs=rngs)
        self.width, self.scan, self.count = dims.width, scan, depth // period

    def __call__(self, tokens: Any, caches: Any = None) -> Any:
        x = self.embedding(tokens)
        x = x * jnp.asarray(self.width**0.5, x.dtype)
        x, caches = (self.scanned if self.scan else self.looped)(x, nnx.as_pure(self.tied), caches)
        logits = self.embedding.attend(self.norm(x))
        return logits if caches is None else (logits, caches)

    def scanned(self, x: Any, tied: Any, caches: Any) -> tuple[Any, Any]:
        """All periods in one compiled loop."""

        @nnx.scan(in_axes=(nnx.Carry, 0, None, 0), out_axes=(nnx.Carry, 0))
        def run(x: Any, period: Period, tied: Any, caches: Any) -> tuple[Any, Any]:
            return period(x, tied, caches)

        return run(x, self.periods, tied, caches)

    def looped(self, x: Any, tied: Any, caches: Any) -> tuple[Any, Any]:
        """One period after the other."""
        longer = []
        for n in range(self.count):
            period, own = jax.tree.map(lambda a, n=n: a[n], (self.periods, caches))
            x, own = period(x, tied, own)
            longer.append(own)
        return x, None if caches is None else jax.tree.map(lambda *a: jnp.stack(a), *longer)

    def empty(self, batch: int, capacity: int) -> Any:
        """Caches for all layers."""

        def of(period: Period) -> Any:
            sizes = {"batch": batch, "capacity": capacity, "dtype": self.embedding.dtype}
            pairs = zip(period.blocks, nnx.as_pure(self.tied), strict=True)
            return tuple(block.attention.empty(tied=tied, **sizes) for block, tied in pairs)

        return jax.vmap(of, axis_size=self.count)(self.periods)
