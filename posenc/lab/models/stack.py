"""Layers under a scheme, with what stands before and after them: a Transformer, or one side of one that has two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from posenc.attention.cache import Cache
from posenc.coordinates import place
from posenc.core.compose import Pattern, bare
from posenc.lab.models.attentions import under
from posenc.lab.models.decoding import empty, part
from posenc.lab.models.draws import Build
from posenc.lab.models.ends import Ends
from posenc.lab.models.inputs import Inputs, told
from posenc.lab.models.layers import about, periods, schemes, through
from posenc.lab.models.parts import dropout, normalise
from posenc.lab.models.shape import Shape
from posenc.naming import spec


def alone(x: Float[Array, "B T D"], n: Any, i: int, block: Any, cache: Cache | None, **own: Any) -> tuple[Array, Any]:
    """A layer that looks at nothing but its own sequence."""
    return (block(x, **own), None) if cache is None else block(x, cache=cache, **own)


class Stack(Ends):
    """A base of Transformers. It holds `blocks`, one for each layer of a period, stacked, and the `scale` of a norm.

    What the layers are and draw is said with `builds`, and kept with `take`: two stacks may share one draw.
    """

    def __init__(self, scheme: Any, shape: Shape):
        composed = under(shape.attention, scheme, shape.dims)
        self.input = composed.input if isinstance(composed, Pattern) else composed
        self.shape, self.periods = shape, periods(scheme, shape.depth)
        self.plain, self.layers = schemes(scheme), schemes(composed)
        """The schemes of a period, as they were given, and on the model's attention."""

    def builds(self, layer: Callable[[int, Any], Any]) -> list[tuple[Build, int | None]]:
        """What is to be cut for it from the draw; `layer(i, rngs)` makes the i-th of a period."""
        made = [(lambda rngs, i=i: layer(i, rngs), self.periods) for i in range(len(self.layers))]
        return [*made, (lambda rngs: self._outer(rngs, self.layers), None)]

    def take(self, made: list[Any]) -> None:
        """Keep what was cut."""
        *blocks, outer = made
        self.blocks = nnx.List(blocks)
        self._keep(*outer)
        self.scale = nnx.Param(jnp.ones(self.shape.dims.width))

    def shared(self, i: int) -> Any:
        """What layers share of the parameters of the i-th scheme of a period."""
        return self.tied.get_value()[spec(bare(self.layers[i]))]

    def caches(self, inputs: Inputs, key: PRNGKeyArray, most: int) -> tuple[Cache, ...]:
        """Empty caches of the layers of a period, as `posenc.lab.models.decoding` says."""
        (batch, length), given = inputs.tokens.shape, told(inputs)
        sizes = {"batch": batch, "length": length, "most": most, "dtype": self.shape.dtype}
        each = enumerate(zip(self.layers, self.blocks, strict=True))
        return tuple(empty(s, b.attention, place(s, key, given), tied=self.shared(i), **sizes) for i, (s, b) in each)

    def states(
        self,
        inputs: Inputs,
        key: PRNGKeyArray,
        layer: Callable[..., tuple[Array, Any]] = alone,
        *,
        train: bool = False,
        new: tuple[Any, int] | None = None,
        beside: Any = None,
    ) -> tuple[Float[Array, "B T D"], tuple[Any, ...]]:
        """The tokens after the last layer and its norm, and what the layers give beside them.

        `new` says the first and how many, else it is all of them. A `layer` is that of `lab.models.layers.through`,
        and is told besides what attention is told, and where it drops out.
        """
        drop = dropout(self.shape.dropout, key, train)

        def one(x, n, i, block, beside):
            own = about(self.layers[i], n, inputs, key, train=train, new=new)
            return layer(x, n, i, block, beside, drop=drop.at("layer", n), tied=self.shared(i), **own)

        x = self.enter(inputs, key, train)
        x, beside = through(one, x if new is None else part(x, *new), self.blocks, beside)
        return normalise(x, self.scale.get_value()) if self.shape.norm == "pre" else x, beside
