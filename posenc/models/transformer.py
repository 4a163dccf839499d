"""The Transformer we train, encoder or decoder, under any scheme or pattern of schemes (Vaswani et al., 2017).

Layers are stacked by period and run by one scan; parameters that layers share are held once and closed over.
Randomness comes in as a key: it draws positions where coordinates are random, and nothing else. `carried` takes what is
trained from a model to one of the same sizes under another scheme.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from posenc.attention import embed
from posenc.compose import Chain, Pattern, bare, leaves
from posenc.coordinates import place
from posenc.models.draws import cut
from posenc.models.inputs import Inputs
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

    def __init__(self, scheme: Any, shape: Shape, key: PRNGKeyArray):
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
        inputs: Inputs,
        key: PRNGKeyArray,
        *,
        train: bool = False,
    ) -> Float[Array, "B T classes"]:
        """Padding is seen by nobody. `key` draws positions, where coordinates are random."""
        given = told(inputs)
        segments, tied = inputs.valid.astype(jnp.int32), self.tied.get_value()
        x = self.enter(inputs.tokens, segments, key, given, train)

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


def told(inputs: Inputs) -> dict[str, Any]:
    """What coordinates are made from: the index, the length of each sequence, and what the task tells."""
    index = np.arange(inputs.tokens.shape[-1], dtype=np.int32)  # known while tracing, so that tables can refuse it
    return {"index": index, "length": inputs.valid.sum(-1)} | inputs.coords


def normalise(x: Float[Array, "... width"], scale: Float[Array, " width"]) -> Float[Array, "... width"]:
    """Layer normalisation with a scale and no shift (Ba et al., 2016), in float32 at least."""
    exact = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    exact = exact - exact.mean(-1, keepdims=True)
    exact = exact * jax.lax.rsqrt((exact**2).mean(-1, keepdims=True) + 1e-6)
    return (exact * scale.reshape((1,) * (x.ndim - 1) + (-1,))).astype(x.dtype)


def carried(before: PyTree, fresh: PyTree) -> PyTree:
    """The tree before, such as a model and its moments, in the form of a fresh one, whose scheme may be another.

    Layers keep their weights whatever the period. Of positional parameters a layer keeps those of equal parts of its
    scheme, in order; `anew` names the others, which stay as they are in `fresh`.
    """
    whole = lambda a: isinstance(a, Transformer)  # noqa: E731
    return jax.tree.map(lambda a, b: _continued(a, b) if whole(b) else a, before, fresh, is_leaf=whole)


def anew(before: Transformer, fresh: Transformer) -> tuple[str, ...]:
    """The positional parameters that `carried` leaves fresh: "kerple (layer 1, layer 3)", "t5 (shared)".

    Raises `ValueError` where any other parameter would be left.
    """
    known = {name for names in _names(before) for every in names for name in every}
    found: dict[str, dict[str, None]] = {}
    for kind, n, *rest in (every[0] for names in _names(fresh) for every in names if known.isdisjoint(every)):
        if kind == "weight":
            raise ValueError(f"A model of other sizes goes on: there is no {'.'.join(map(str, rest))} before it.")
        found.setdefault(rest[0], {})["shared" if kind == "shared" else f"layer {n + 1}"] = None
    return tuple(f"{part} ({', '.join(where)})" for part, where in found.items())


def _continued(before: Transformer, fresh: Transformer) -> Transformer:
    anew(before, fresh)  # refuses
    known: dict[tuple, Array] = {}
    for names, a in zip(_names(before), _turns(before), strict=True):
        for every, one in zip(names, a, strict=True):
            known = dict.fromkeys(every, one) | known  # of several that would do anywhere, the first
    made = []
    for names, a in zip(_names(fresh), _turns(fresh), strict=True):
        kept = [next((known[name] for name in every if name in known), a[n]) for n, every in enumerate(names)]
        made.append(jnp.stack(kept))
    whole, tree = jax.tree.flatten(fresh)
    return jax.tree.unflatten(tree, [a.reshape(b.shape) for a, b in zip(made, whole, strict=True)])


def _turns(model: Transformer) -> list[Array]:
    """The leaves, all with a leading axis: the turns of the scan, or one."""
    found = jax.tree_util.tree_leaves_with_path(model)
    return [a if word(path[0]) == "blocks" else a[None] for path, a in found]


def _names(model: Transformer) -> list[list[list[tuple]]]:
    """What each turn of each leaf is, in words that do not depend on the period or on the rest of a sum.

    What layers share has several names: one for each place that it serves, then one for any.
    """
    return [_named(model, [word(key) for key in path]) for path, _ in jax.tree_util.tree_leaves_with_path(model)]


def _named(model: Transformer, words: list[Any]) -> list[list[tuple]]:
    period, depth = len(model.layers), model.shape.depth
    match words:
        case ["blocks", i, "attention", "position", _, *rest]:
            return [[("own", n, *_part(model.layers[i], rest))] for n in range(i, depth, period)]
        case ["blocks", i, *rest]:
            return [[("weight", n, *rest)] for n in range(i, depth, period)]
        case ["tied", _, text, *rest]:
            served = {"input": model.input} | {n: model.layers[n % period] for n in range(depth)}
            places = [place for place, s in served.items() if s is not None and spec(bare(s)) == text]
            part = _part(served[places[0]], rest)
            return [[("shared", place, *part) for place in (*places, "any")]]
    return [[("weight", None, *words)]]


def _part(scheme: Any, path: list[Any]) -> tuple:
    """A plain scheme within a sum, how many equal ones stand before it, and the rest of a path to a parameter."""
    scheme, passed = bare(scheme), []
    while isinstance(scheme, Chain):
        n, *path = path
        passed += [spec(s) for part in scheme.parts[:n] for s in leaves(part)]
        scheme = bare(scheme.parts[n])
    return spec(scheme), passed.count(spec(scheme)), *path


def word(key: Any) -> Any:
    """A step of a path, without its kind."""
    return next(getattr(key, kind) for kind in ("name", "key", "idx") if hasattr(key, kind))
