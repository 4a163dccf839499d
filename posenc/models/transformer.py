"""The Transformer we train, encoder or decoder, under any scheme or pattern of schemes (Vaswani et al., 2017).

Layers are stacked by period and run by one scan; parameters that layers share are held once and closed over.
Randomness comes in as a key: it draws positions where coordinates are random, and nothing else.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from posenc.attention import embed
from posenc.compose import Pattern, bare
from posenc.coordinates import place
from posenc.models.draws import cut
from posenc.models.stems import Stem
from posenc.naming import spec
from posenc.nnx import Attention
from posenc.parameters import init, split
from posenc.scheme import Dims

REVISION = 1
"""Raised when the model changes its numbers: part of every trial's identity."""
UNROLLED = 8


class Shape(NamedTuple):
    """The sizes of a Transformer."""

    dims: Dims
    depth: int
    hidden: int
    vocab: int
    classes: int
    norm: Literal["pre", "post"] = "pre"
    dtype: Any = jnp.float32
    stem: Stem | None = None


class Block(nnx.Module):
    """One layer: attention, then a feed-forward layer, each beside a residual, with norms before or after."""

    def __init__(self, scheme: Any, shape: Shape, *, rngs: Any):
        width, hidden = shape.dims.width, shape.hidden
        self.norm = shape.norm
        self.attention = Attention(scheme, shape.dims, rngs=rngs, embedded=True, tied=False)
        self.up = nnx.Param(rngs.params.normal((width, hidden)) * width**-0.5)
        self.down = nnx.Param(rngs.params.normal((hidden, width)) * hidden**-0.5)
        self.scales = nnx.Param(jnp.ones((2, width)))

    def __call__(self, x: Float[Array, "B T D"], **about: Any) -> Float[Array, "B T D"]:
        first, second = self.scales.get_value()
        if self.norm == "post":
            x = normalise(x + self.attention(x, **about), first)
            return normalise(x + self._feed(x), second)
        x = x + self.attention(normalise(x, first), **about)
        return x + self._feed(normalise(x, second))

    def _feed(self, x):
        up, down = self.up.get_value().astype(x.dtype), self.down.get_value().astype(x.dtype)
        return jax.nn.relu(x @ up) @ down


class Transformer(nnx.Module):
    """Tokens to logits at every token: `[B, T] -> [B, T, classes]`."""

    def __init__(self, scheme: Any, shape: Shape, *, key: PRNGKeyArray):
        patterned = isinstance(scheme, Pattern)
        self.input = scheme.input if patterned else scheme
        self.layers = scheme.layers if patterned else (scheme,)
        periods, left = divmod(shape.depth, len(self.layers))
        if left:
            raise ValueError(
                f"A depth of {shape.depth} is no multiple of the {len(self.layers)} layers of {spec(scheme)}."
            )
        self.shape, self.periods = shape, periods
        blocks = [(lambda rngs, s=s: Block(s, shape, rngs=rngs), periods) for s in self.layers]
        *blocks, (tied, embedding, readout, *stem) = cut([*blocks, (self._outer, None)], key)
        self.blocks = nnx.List(blocks)
        self.tied, self.embedding, self.readout = nnx.Param(tied), nnx.Param(embedding), nnx.Param(readout)
        self.scale = nnx.Param(jnp.ones(shape.dims.width))
        if stem:
            self.stem = nnx.Param(stem[0])

    def _outer(self, rngs: Any) -> tuple[Any, ...]:
        """What is not of one layer: the parameters that layers share, the embedding, the readout, and a stem's."""
        shape, width = self.shape, self.shape.dims.width
        schemes = {spec(bare(s)): bare(s) for s in (self.input, *self.layers) if s is not None}
        tied = {name: split(s, init(s, rngs.params(), shape.dims))[0] for name, s in schemes.items()}
        readout = rngs.params.normal((width, shape.classes)) * width**-0.5
        # not unit normal: tokens would drown positions in learned tables, which start at 0.02
        embedding = rngs.params.normal((shape.vocab, width)) * width**-0.5
        stem = (shape.stem.init(rngs.params.normal, shape.dims),) if shape.stem else ()
        return tied, embedding, readout, *stem

    def __call__(
        self,
        tokens: Int[Array, "B T"],
        valid: Bool[Array, "B T"],
        key: PRNGKeyArray,
        coords: dict[str, Int[Array, "B T"]] | None = None,
        *,
        train: bool = False,
    ) -> Float[Array, "B T classes"]:
        """Padding, where `valid` is False, is seen by nobody. `key` draws positions, where coordinates are random."""
        index = np.arange(tokens.shape[-1], dtype=np.int32)  # known while tracing, so that tables can refuse it
        given = {"index": index, "length": valid.sum(-1)} | (coords or {})
        segments, tied = valid.astype(jnp.int32), self.tied.get_value()
        x = self.enter(tokens, segments, key, given, train)

        def period(x, turn):
            n, blocks = turn
            for i, (s, block) in enumerate(zip(self.layers, blocks, strict=True)):
                positions = place(s, key, given, layer=n * len(self.layers) + i, train=train)
                x = block(x, positions=positions, segments=segments, tied=tied[spec(bare(s))])
            return x, None

        turns = jnp.arange(self.periods), tuple(self.blocks)
        x, _ = jax.lax.scan(period, x, turns, unroll=min(self.periods, UNROLLED))
        if self.shape.norm == "pre":
            x = normalise(x, self.scale.get_value())
        return (x @ self.readout.get_value().astype(x.dtype)).astype(jnp.float32)

    def enter(
        self, tokens: Int[Array, "B T"], segments: Int[Array, "B T"], key: PRNGKeyArray, given: Any, train: bool = False
    ) -> Float[Array, "B T D"]:
        """The input of the first layer: the tokens' embedding, through the stem, then what acts on the input."""
        x = self.embedding.get_value()[tokens].astype(self.shape.dtype)
        if self.shape.stem is not None:
            own, causal = self.stem.get_value(), self.shape.dims.causal
            x = jax.vmap(lambda x, s: self.shape.stem(own, x, s, causal))(x, segments)
        if self.input is not None:
            shared = self.tied.get_value()[spec(bare(self.input))]
            positions = place(self.input, key, given, train=train)
            x = embed(self.input, shared, x, positions=positions, segments=segments)
        return x


def normalise(x: Float[Array, "... width"], scale: Float[Array, " width"]) -> Float[Array, "... width"]:
    """Layer normalisation with a scale and no shift (Ba et al., 2016), in float32 at least."""
    exact = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    exact = exact - exact.mean(-1, keepdims=True)
    exact = exact * jax.lax.rsqrt((exact**2).mean(-1, keepdims=True) + 1e-6)
    return (exact * scale.reshape((1,) * (x.ndim - 1) + (-1,))).astype(x.dtype)
