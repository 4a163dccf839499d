"""The encoder-decoder Transformer: it reads a source and writes from left to right (Vaswani et al., 2017, §3.1).

    reader   m = source; each layer  m ← m + self(m),  m ← m + feed(m)                           bidirectional
    writer   y = text;   each layer  y ← y + self(y),  y ← y + across(y, m),  y ← y + feed(y)    causal
    across   Σ_j softmax_j(W_q y_i · W_k m_j / √d) W_v m_j · W_o     from every token to every token of the source

One scheme acts in both, with separate parameters. Open settings are filled separately too, so T5's buckets cover both
directions in the reader alone. The model's setting `cross` decides the scheme of cross attention. "nope" has none, as
in T5 and in the original, whose sinusoids are added to the two inputs. "same" uses the scheme of the sequences, with
the positions that the tokens have there. It is refused if the scheme is undefined between two sequences. A window does
not apply to cross attention.

Norms come before or after all five branches; with "pre", the source gets one more norm after the reader's last layer.
The two embeddings and the readout are three matrices; the authors' model shares one.

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

from posenc.adapters.multihead import draw, merge_heads
from posenc.attention.attend import attend
from posenc.attention.cache import Cache
from posenc.core.compose import normal_form, without_window
from posenc.core.parameters import init, join, split
from posenc.core.scheme import Dims
from posenc.core.shapes import label
from posenc.lab.models.attentions import query_factor, with_attention
from posenc.lab.models.draws import cut
from posenc.lab.models.ends import INSIDE, tied_name
from posenc.lab.models.interface import Inputs, Shape, source_inputs
from posenc.lab.models.layers import attention_arguments
from posenc.lab.models.parts import Dropout, linear, normalise
from posenc.lab.models.stack import Stack
from posenc.lab.models.transformer import Block
from posenc.lab.models.weights import Positional, Weight, positional, shared_positional
from posenc.naming import bind, parse
from posenc.nnx import Attention


class Across(nnx.Module):
    """Attention from one sequence to another, of several heads (Vaswani et al., 2017, §3.2.3)."""

    def __init__(self, scheme: Any, shape: Shape, dims: Dims, *, rngs: Any):
        self.scheme, self.head = with_attention(shape.attention, scheme, dims), dims.head
        query, *others = draw(self.scheme, dims, rngs.params.normal)
        self.query = Weight(query * query_factor(scheme, self.scheme, dims))
        self.key_value, self.out = map(Weight, others)
        self.position = positional(self.scheme, split(self.scheme, init(self.scheme, rngs.params(), dims))[1])

    def keys(self, memory: Float[Array, "B S D"]) -> Float[Array, "2 B S G d"]:
        """Keys and values of the source; they do not change while the text is written."""
        key_value = linear(memory, self.key_value.get_value())
        return rearrange(key_value, "b s (n g d) -> n b s g d", n=2, d=self.head)

    def __call__(self, x: Float[Array, "B T D"], keys: Array, tied: Any, **arguments: Any) -> Float[Array, "B T D"]:
        q = rearrange(linear(x, self.query.get_value()), "b t (h d) -> b t h d", d=self.head)
        params = join(tied, self.position.get_value())
        mixed = attend(self.scheme, params, q, *keys, x=x, mask="full", **arguments)
        return linear(merge_heads(mixed), self.out.get_value())


class WriterLayer(nnx.Module):
    """One layer of the writer: a block with cross attention between its two halves."""

    def __init__(self, scheme: Any, cross: Any, shape: Shape, dims: Dims, *, rngs: Any):
        self.block = Block(scheme, shape, rngs=rngs)
        self.across = Across(cross, shape, dims, rngs=rngs)
        self.scale = nnx.Param(jnp.ones(shape.dims.width))

    @property
    def attention(self) -> Attention:
        """The attention within the sequence, whose keys a cache keeps."""
        return self.block.attention

    def __call__(
        self, x: Float[Array, "B T D"], keys: Array, across: dict, drop: Dropout, cache: Cache | None, **arguments: Any
    ) -> tuple[Float[Array, "B T D"], Cache | None]:
        before, scale = self.block.norm == "pre", self.scale.get_value()
        x, cache = self.block.attend(x, drop, cache, **arguments)
        x = x + drop.at("across")(self.across(normalise(x, scale) if before else x, keys, **across))
        return self.block.feed(x if before else normalise(x, scale), drop), cache


class EncoderDecoder(nnx.Module):
    """Text and source to logits at every token of the text: `[B, T]` and `[B, S]` to `[B, T, classes]`."""

    def __init__(self, scheme: Any, shape: Shape, key: PRNGKeyArray):
        full, causal = (dataclasses.replace(shape.dims, causal=causal) for causal in (False, True))
        self.reader = Stack(bind(scheme, full), shape._replace(dims=full, classes=0))
        self.writer = Stack(bind(scheme, causal), shape._replace(dims=causal))
        for s in self.reader.plain:
            hooks = normal_form(s).scheme
            if why := hooks.limits.get("bidirectional"):
                raise ValueError(
                    f"{label(hooks)} is causal only: {why}; the source is read both ways, so take another scheme."
                )
        kind: Any = shape.model
        plain = tuple(cross_scheme(s, kind.cross) for s in self.reader.plain)
        self.across = tuple(with_attention(shape.attention, s, full) for s in plain)

        def layer(i: int, rngs: Any) -> WriterLayer:
            return WriterLayer(self.writer.plain[i], plain[i], self.writer.shape, full, rngs=rngs)

        def shared(rngs: Any) -> Positional:
            by_name = {tied_name(s): s for s in self.across}
            params = {name: split(s, init(s, rngs.params(), full))[0] for name, s in by_name.items()}
            return shared_positional(by_name, params)

        reads = self.reader.builders(lambda i, rngs: Block(self.reader.plain[i], self.reader.shape, rngs=rngs))
        *made, self.tied = cut([*reads, *self.writer.builders(layer), (shared, None)], key)
        self.reader.set_parameters(made[: len(reads)])
        self.writer.set_parameters(made[len(reads) :])

    def __call__(self, inputs: Inputs, key: PRNGKeyArray, *, train: bool = False) -> Float[Array, "B T classes"]:
        """Padding affects no other token. `key` draws random positions and dropout."""
        memory = self.read(inputs, key, train)

        def layer(x, n, i, block, _, **arguments):
            across = self._across(n, i, inputs, memory, key, train=train)
            return block(x, block.across.keys(memory), across, cache=None, **arguments)

        return self.writer.leave(self.writer.states(inputs, key, layer, train=train)[0])

    def read(self, inputs: Inputs, key: PRNGKeyArray, train: bool = False) -> Float[Array, "B S D"]:
        """The source after the reader's last layer, to which the writer attends."""
        return self.reader.states(*source_inputs(inputs, key), train=train)[0]

    def begin(self, inputs: Inputs, key: PRNGKeyArray, most: int) -> Any:
        """The encoded source, its keys and values for each layer, and empty caches: see `lab.models.interface`."""
        memory = self.read(inputs, key)
        keys = [jax.vmap(lambda block: block.across.keys(memory))(block) for block in self.writer.blocks]
        return memory, tuple(zip(keys, self.writer.caches(inputs, key, most), strict=True))

    def proceed(self, state: Any, inputs: Inputs, key: PRNGKeyArray, first: Any, new: int) -> tuple[Array, Any]:
        """The logits of `new` tokens from `first` on, `[B, new, classes]`, and the next state."""
        memory, states = state

        def layer(x, n, i, block, state, **arguments):
            keys, cache = state
            across = self._across(n, i, inputs, memory, key, new=(first, new))
            x, cache = block(x, keys, across, cache=cache, **arguments)
            return x, (keys, cache)

        x, states = self.writer.states(inputs, key, layer, new=(first, new), states=states)
        return self.writer.leave(x), (memory, states)

    def _across(self, n: Any, i: int, inputs: Inputs, memory: Array, key: Any, train: bool = False, new: Any = None):
        """The arguments of cross attention in layer n of the model, layer i of its period."""
        s = self.across[i]
        queries = attention_arguments(s, n, inputs, key, train=train, new=new)
        source = attention_arguments(s, n, *source_inputs(inputs, key), train=train)
        keys = {f"key_{name}": a for name, a in source.items()}
        return {"tied": self.tied.get_value()[tied_name(s)], "key_x": memory, **queries, **keys}


def cross_scheme(scheme: Any, cross: str) -> Any:
    """The scheme of a layer's cross attention: none, or with "same" that of the layer, where it is defined."""
    scheme = without_window(scheme)
    plain = normal_form(scheme).scheme
    if cross == "nope" or not plain.overrides(*INSIDE):
        return parse("nope")
    if "cross" in plain.limits:
        raise ValueError(f"{label(plain)} is undefined between two sequences; take cross='nope', or another scheme.")
    if plain.overrides("embed"):
        raise ValueError(
            f"{label(plain)} also acts on the input, which all attention shares; write input schemes before a list,"
            " such as 'sinusoidal + [rope]', or take cross='nope'."
        )
    return scheme
