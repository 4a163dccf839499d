"""The Transformer we train, encoder or decoder, under any scheme or pattern of schemes (Vaswani et al., 2017).

Layers are stacked by period and run by one scan; parameters that layers share are held once and closed over.
Randomness comes in as a key: it draws positions where coordinates are random, and what dropout leaves. `carried` takes
what is trained from a model to one of the same sizes under another scheme.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from posenc.cache import Cache
from posenc.compose import Chain, Pattern, bare, leaves
from posenc.coordinates import place
from posenc.models.attentions import spread, under
from posenc.models.decoding import empty, part
from posenc.models.draws import cut
from posenc.models.dropout import NOTHING, Dropout, dropout
from posenc.models.ends import Ends
from posenc.models.ends import told as told
from posenc.models.inputs import Inputs
from posenc.models.layers import about, periods, schemes, through
from posenc.models.shape import Shape as Shape
from posenc.naming import spec
from posenc.nnx import Attention


class Block(nnx.Module):
    """One layer: attention, then a feed-forward layer, each beside a residual, with norms before or after."""

    def __init__(self, scheme: Any, shape: Shape, *, rngs: Any):
        width, hidden, composed = shape.dims.width, shape.hidden, under(shape.attention, scheme, shape.dims)
        self.norm = shape.norm
        self.attention = Attention(composed, shape.dims, rngs=rngs, embedded=True, tied=False)
        if shape.attention != "scaled_dot":
            query = self.attention.query.get_value() * spread(scheme, composed, shape.dims)
            self.attention.query = nnx.Param(query)
        self.up = nnx.Param(rngs.params.normal((width, hidden)) * width**-0.5)
        self.down = nnx.Param(rngs.params.normal((hidden, width)) * hidden**-0.5)
        self.scales = nnx.Param(jnp.ones((2, width)))

    def __call__(
        self, x: Float[Array, "B T D"], *, drop: Dropout = NOTHING, cache: Cache | None = None, **about: Any
    ) -> Any:
        """The tokens after this layer, and with a `cache` that cache with the new tokens in it."""
        x, kept = self.look(x, drop, cache, **about)
        x = self.feed(x, drop)
        return x if cache is None else (x, kept)

    def look(self, x: Float[Array, "B T D"], drop: Dropout, cache: Cache | None, **about: Any) -> Any:
        """The first half: attention, beside its residual."""
        mixed = self.attention(self.before(x, 0), cache=cache, **about)
        mixed, cache = (mixed, None) if cache is None else mixed
        return self.after(x + drop.at("attention")(mixed), 0), cache

    def feed(self, x: Float[Array, "B T D"], drop: Dropout) -> Float[Array, "B T D"]:
        """The second half: the feed-forward layer, beside its residual."""
        return self.after(x + drop.at("feed")(self._feed(self.before(x, 1))), 1)

    def before(self, x, n):
        return normalise(x, self.scales.get_value()[n]) if self.norm == "pre" else x

    def after(self, x, n):
        return normalise(x, self.scales.get_value()[n]) if self.norm == "post" else x

    def _feed(self, x):
        up, down = self.up.get_value().astype(x.dtype), self.down.get_value().astype(x.dtype)
        return jax.nn.relu(x @ up) @ down


class Transformer(Ends):
    """Tokens to logits at every token: `[B, T] -> [B, T, classes]`."""

    def __init__(self, scheme: Any, shape: Shape, key: PRNGKeyArray):
        composed = under(shape.attention, scheme, shape.dims)
        self.input = composed.input if isinstance(composed, Pattern) else composed
        self.layers, self.shape, self.periods = schemes(composed), shape, periods(scheme, shape.depth)
        blocks = [(lambda rngs, s=s: Block(s, shape, rngs=rngs), self.periods) for s in schemes(scheme)]
        *blocks, outer = cut([*blocks, (lambda rngs: self._outer(rngs, self.layers), None)], key)
        self.blocks = nnx.List(blocks)
        self._keep(*outer)
        self.scale = nnx.Param(jnp.ones(shape.dims.width))

    def __call__(self, inputs: Inputs, key: PRNGKeyArray, *, train: bool = False) -> Float[Array, "B T classes"]:
        """Padding is seen by nobody. `key` draws positions, where coordinates are random, and what dropout leaves."""
        given, segments = told(inputs), inputs.valid.astype(jnp.int32)
        drop = dropout(self.shape.dropout, key, train)

        def layer(x, n, i, block, _):
            own = about(self.layers[i], n, key, given, segments, train=train)
            return block(x, drop=drop.at("layer", n), tied=self._shared(i), **own), None

        return self._left(through(layer, self.enter(inputs.tokens, segments, key, given, train), self.blocks)[0])

    def begin(self, inputs: Inputs, key: PRNGKeyArray, most: int) -> tuple[Cache, ...]:
        """Empty caches, for generation: see `posenc.models.decoding`."""
        (batch, length), given, kept = inputs.tokens.shape, told(inputs), []
        for i, (s, block) in enumerate(zip(self.layers, self.blocks, strict=True)):
            sizes = {"batch": batch, "length": length, "most": most, "dtype": self.shape.dtype}
            kept.append(empty(s, block.attention, place(s, key, given), tied=self._shared(i), **sizes))
        return tuple(kept)

    def proceed(
        self, caches: tuple[Cache, ...], inputs: Inputs, key: PRNGKeyArray, first: Any, new: int
    ) -> tuple[Float[Array, "B new classes"], tuple[Cache, ...]]:
        """The logits of `new` tokens from `first` on, and the caches with them."""
        given, segments = told(inputs), inputs.valid.astype(jnp.int32)

        def layer(x, n, i, block, cache):
            own = about(self.layers[i], n, key, given, segments, new=(first, new))
            return block(x, cache=cache, tied=self._shared(i), **own)

        x = part(self.enter(inputs.tokens, segments, key, given), first, new)
        x, caches = through(layer, x, self.blocks, caches)
        return self._left(x), caches

    def _shared(self, i: int) -> Any:
        return self.tied.get_value()[spec(bare(self.layers[i]))]

    def _left(self, x: Float[Array, "B T D"]) -> Float[Array, "B T classes"]:
        return self.leave(normalise(x, self.scale.get_value()) if self.shape.norm == "pre" else x)


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
