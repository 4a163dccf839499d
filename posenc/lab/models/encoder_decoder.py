"""The Transformer that reads a source and writes from left to right, looking at it (Vaswani et al., 2017, §3.1).

    reader   m = source; each layer  m ← m + self(m),  m ← m + feed(m)                           both ways
    writer   y = text;   each layer  y ← y + self(y),  y ← y + across(y, m),  y ← y + feed(y)    causal
    across   Σ_j softmax_j(W_q y_i · W_k m_j / √d) W_v m_j · W_o     from every token to every token of the source

One scheme acts in both, with parameters of its own in each; open settings are filled for each, so that T5's buckets lie
both ways in the reader alone. What it does across is the model's setting `cross`. "nope": nothing, as in the original,
whose sinusoids stand at the two inputs, and as in T5. "same": what it does within a sequence, with the positions that
both have there; refused where the scheme is undefined between two sequences. A window is left out there.

Norms stand before or after all five branches; before, the source is normalised once more where it was read. The two
embeddings and the readout are three matrices; the authors' model has one.

@inproceedings{vaswani2017attention, title={Attention is All You Need},
  author={Vaswani, Ashish and Shazeer, Noam and others}, booktitle={NeurIPS}, year={2017}}
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from einops import rearrange
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from posenc.adapters.multihead import draw
from posenc.attention.attend import attend
from posenc.attention.cache import Cache
from posenc.core.compose import Windowed, bare
from posenc.core.parameters import init, join, split
from posenc.core.scheme import Dims
from posenc.core.shapes import label
from posenc.lab.models.attentions import spread, under
from posenc.lab.models.draws import cut
from posenc.lab.models.ends import INSIDE
from posenc.lab.models.inputs import Inputs, of_source
from posenc.lab.models.layers import about
from posenc.lab.models.parts import Dropout, normalise
from posenc.lab.models.shape import Shape
from posenc.lab.models.stack import Stack
from posenc.lab.models.transformer import Block
from posenc.naming import bind, parse, spec
from posenc.nnx import Attention


class Across(nnx.Module):
    """Attention from one sequence to another, of several heads (Vaswani et al., 2017, §3.2.3)."""

    def __init__(self, scheme: Any, shape: Shape, dims: Dims, *, rngs: Any):
        self.scheme, self.head = under(shape.attention, scheme, dims), dims.head
        query, *others = draw(self.scheme, dims, rngs.params.normal)
        self.query = nnx.Param(query * spread(scheme, self.scheme, dims))
        self.key_value, self.out = map(nnx.Param, others)
        self.position = nnx.Param(split(self.scheme, init(self.scheme, rngs.params(), dims))[1])

    def keys(self, memory: Float[Array, "B S D"]) -> Float[Array, "2 B S G d"]:
        """Keys and values of the source, which stay as they are while it is looked at."""
        both = memory @ self.key_value.get_value().astype(memory.dtype)
        return rearrange(both, "b s (n g d) -> n b s g d", n=2, d=self.head)

    def __call__(self, x: Float[Array, "B T D"], keys: Array, tied: Any, **told: Any) -> Float[Array, "B T D"]:
        q = rearrange(x @ self.query.get_value().astype(x.dtype), "b t (h d) -> b t h d", d=self.head)
        params = join(tied, self.position.get_value())
        mixed = attend(self.scheme, params, q, *keys, x=x, mask="full", **told)
        return rearrange(mixed, "b t h d -> b t (h d)") @ self.out.get_value().astype(x.dtype)


class Layer(nnx.Module):
    """One layer of the writer: a block with a look at the source in its middle."""

    def __init__(self, scheme: Any, cross: Any, shape: Shape, dims: Dims, *, rngs: Any):
        self.block = Block(scheme, shape, rngs=rngs)
        self.across = Across(cross, shape, dims, rngs=rngs)
        self.scale = nnx.Param(jnp.ones(shape.dims.width))

    @property
    def attention(self) -> Attention:
        """That within the sequence, whose keys a cache keeps."""
        return self.block.attention

    def __call__(
        self, x: Float[Array, "B T D"], keys: Array, across: dict, drop: Dropout, cache: Cache | None, **told: Any
    ) -> tuple[Float[Array, "B T D"], Cache | None]:
        before, scale = self.block.norm == "pre", self.scale.get_value()
        x, cache = self.block.look(x, drop, cache, **told)
        x = x + drop.at("across")(self.across(normalise(x, scale) if before else x, keys, **across))
        return self.block.feed(x if before else normalise(x, scale), drop), cache


class EncoderDecoder(nnx.Module):
    """Text and source to logits at every token of the text: `[B, T]` and `[B, S]` to `[B, T, classes]`."""

    def __init__(self, scheme: Any, shape: Shape, key: PRNGKeyArray):
        both, own = (dataclasses.replace(shape.dims, causal=causal) for causal in (False, True))
        reading = bind(scheme, both)
        self.reader = Stack(reading, shape._replace(dims=both, classes=0))
        self.writer = Stack(bind(scheme, own), shape._replace(dims=own))
        for s in self.reader.plain:
            if why := bare(s).limits.get("bidirectional"):
                raise ValueError(f"{label(bare(s))} is causal only: {why}; the source is read both ways.")
        kind: Any = shape.model
        plain = tuple(between(s, kind.cross) for s in self.reader.plain)
        self.across = tuple(under(shape.attention, s, both) for s in plain)

        def layer(i: int, rngs: Any) -> Layer:
            return Layer(self.writer.plain[i], plain[i], self.writer.shape, both, rngs=rngs)

        def shared(rngs: Any) -> dict[str, Any]:
            every = {spec(bare(s)): bare(s) for s in self.across}
            return {name: split(s, init(s, rngs.params(), both))[0] for name, s in every.items()}

        reads = self.reader.builds(lambda i, rngs: Block(self.reader.plain[i], self.reader.shape, rngs=rngs))
        *made, tied = cut([*reads, *self.writer.builds(layer), (shared, None)], key)
        self.reader.take(made[: len(reads)])
        self.writer.take(made[len(reads) :])
        self.tied = nnx.Param(tied)

    def __call__(self, inputs: Inputs, key: PRNGKeyArray, *, train: bool = False) -> Float[Array, "B T classes"]:
        """Padding is seen by nobody. `key` draws positions, where coordinates are random, and what dropout leaves."""
        memory = self.read(inputs, key, train)

        def layer(x, n, i, block, _, **own):
            across = self._across(n, i, inputs, memory, key, train=train)
            return block(x, block.across.keys(memory), across, cache=None, **own)

        return self.writer.leave(self.writer.states(inputs, key, layer, train=train)[0])

    def read(self, inputs: Inputs, key: PRNGKeyArray, train: bool = False) -> Float[Array, "B S D"]:
        """What the writer looks at: the source after the reader's last layer."""
        return self.reader.states(*of_source(inputs, key), train=train)[0]

    def begin(self, inputs: Inputs, key: PRNGKeyArray, most: int) -> Any:
        """What was read, its keys and values in each layer, and empty caches: see `posenc.lab.models.decoding`."""
        memory = self.read(inputs, key)
        keys = [jax.vmap(lambda block: block.across.keys(memory))(block) for block in self.writer.blocks]
        return memory, tuple(zip(keys, self.writer.caches(inputs, key, most), strict=True))

    def proceed(self, carry: Any, inputs: Inputs, key: PRNGKeyArray, first: Any, new: int) -> tuple[Array, Any]:
        """The logits of `new` tokens from `first` on, `[B, new, classes]`, and what to carry on."""
        memory, beside = carry

        def layer(x, n, i, block, carried, **own):
            keys, cache = carried
            across = self._across(n, i, inputs, memory, key, new=(first, new))
            x, cache = block(x, keys, across, cache=cache, **own)
            return x, (keys, cache)

        x, beside = self.writer.states(inputs, key, layer, new=(first, new), beside=beside)
        return self.writer.leave(x), (memory, beside)

    def _across(self, n: Any, i: int, inputs: Inputs, memory: Array, key: Any, train: bool = False, new: Any = None):
        """What attention across is told in the n-th layer, the i-th of its period."""
        s = self.across[i]
        asked = about(s, n, inputs, key, train=train, new=new)
        found = about(s, n, *of_source(inputs, key), train=train)
        keys = {f"key_{name}": told for name, told in found.items()}
        return {"tied": self.tied.get_value()[spec(bare(s))], "key_x": memory, **asked, **keys}


def between(scheme: Any, cross: str) -> Any:
    """What a layer's scheme does between two sequences: nothing, or "same" where it is defined there."""
    scheme = scheme.scheme if isinstance(scheme, Windowed) else scheme
    plain = bare(scheme)
    if cross == "nope" or not plain.overrides(*INSIDE):
        return parse("nope")
    if "cross" in plain.limits:
        raise ValueError(f"{label(plain)} is undefined between two sequences; take cross='nope', or another scheme.")
    if plain.overrides("embed"):
        raise ValueError(
            f"{label(plain)} acts on the input too, which is the same for all attention; write what acts there before a"
            " list, such as 'sinusoidal + [rope]', or take cross='nope'."
        )
    return scheme
