"""A stack of layers under a scheme, with embedding and readout: a Transformer, or one side of an encoder-decoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from posenc.attention.cache import Cache
from posenc.attention.kernels import choose, pay
from posenc.coordinates import place
from posenc.core.compose import Pattern, normal_form
from posenc.lab.models.attentions import with_attention
from posenc.lab.models.draws import Build
from posenc.lab.models.ends import Ends, tied_name
from posenc.lab.models.interface import Inputs, Shape, coordinate_inputs
from posenc.lab.models.layers import attention_arguments, empty_caches, periods, scan_layers, schemes
from posenc.lab.models.parts import dropout, normalise


def self_attention_layer(
    x: Float[Array, "B T D"], n: Any, i: int, block: Any, cache: Cache | None, **arguments: Any
) -> tuple[Array, Any]:
    """A layer that attends within its sequence only."""
    return (block(x, **arguments), None) if cache is None else block(x, cache=cache, **arguments)


def _is_of_distance(scheme: Any) -> bool:
    """Tell whether attention computes the bias of a scheme once for each distance, given no positions.

    Other schemes take the index as positions. If it counts from the beginning of a document, each sequence has its own,
    and so would all that is computed from them.
    """
    form = normal_form(scheme)
    return form.scheme.reads == "distance" and all(coordinates is None for coordinates, _ in form.draws)


class Stack(Ends):
    """A base of Transformers. It holds `blocks`, one for each layer of a period, stacked, and the `scale` of a norm.

    `builders` lists how its parameters are built, and `set_parameters` stores the results: two stacks may share one
    draw.
    """

    def __init__(self, scheme: Any, shape: Shape):
        composed = with_attention(shape.attention, scheme, shape.dims)
        self.input = composed.input if isinstance(composed, Pattern) else composed
        self.shape, self.periods = shape, periods(scheme, shape.depth)
        self.plain, self.layers = schemes(scheme), schemes(composed)
        """The schemes of a period, alone and combined with the model's attention."""

    def builders(self, layer: Callable[[int, Any], Any]) -> list[tuple[Build, int | None]]:
        """The builders that `draws.cut` takes; `layer(i, rngs)` builds layer i of a period."""
        blocks = [(lambda rngs, i=i: layer(i, rngs), self.periods) for i in range(len(self.layers))]
        return [*blocks, (lambda rngs: self._outer(rngs, self.layers), None)]

    def set_parameters(self, built: list[Any]) -> None:
        """Store what the builders returned."""
        *blocks, outer = built
        self.blocks = nnx.List(blocks)
        self._set_outer(*outer)
        self.scale = nnx.Param(jnp.ones(self.shape.dims.width))

    def shared(self, i: int) -> Any:
        """The parameters of the i-th scheme of a period that all layers share."""
        return self.tied.get_value()[tied_name(self.layers[i])]

    def caches(self, inputs: Inputs, key: PRNGKeyArray, most: int) -> tuple[Cache, ...]:
        """Empty caches for the layers of a period, when a call adds at most `most` tokens."""
        (batch, length), coordinates = inputs.tokens.shape, coordinate_inputs(inputs)
        sizes = {"batch": batch, "length": length, "most": most, "dtype": self.shape.dtype}
        return tuple(
            empty_caches(s, b.attention, place(s, key, coordinates), tied=self.shared(i), **sizes)
            for i, (s, b) in enumerate(zip(self.layers, self.blocks, strict=True))
        )

    def states(
        self,
        inputs: Inputs,
        key: PRNGKeyArray,
        layer: Callable[..., tuple[Array, Any]] = self_attention_layer,
        *,
        train: bool = False,
        new: tuple[Any, int] | None = None,
        states: Any = None,
    ) -> tuple[Float[Array, "B T D"], tuple[Any, ...]]:
        """The tokens after the last layer and its norm, and the new states of the layers, such as caches.

        `new = (first, number)` restricts the tokens; the default is all. `layer` is called as in
        `lab.models.layers.scan_layers`, and also gets the arguments of attention and its dropout.
        """
        drop = dropout(self.shape.dropout, key, train)

        def run_layer(x, n, i, block, state):
            scheme = self.layers[i]
            arguments = attention_arguments(scheme, n, inputs, key, train=train, new=new)
            if new is None and _is_of_distance(scheme):
                arguments["positions"] = None  # then it knows the differences of positions for those of indices
            return layer(x, n, i, block, state, drop=drop.at("layer", n), tied=self.shared(i), **arguments)

        x = self.enter(inputs, key, train)
        x = x if new is None else jax.lax.dynamic_slice_in_dim(x, *new, 1)
        x, states = scan_layers(run_layer, x, self.blocks, states, train and self._pays_anew(x))
        return normalise(x, self.scale.get_value()) if self.shape.norm == "pre" else x, states

    def _pays_anew(self, x: Float[Array, "B T D"]) -> bool:
        """Tell whether making layers again costs no time: it does not for squares of scores, but for tiles that keep
        sums."""
        length, dims = x.shape[1], self.shape.dims
        q = jax.ShapeDtypeStruct((*x.shape[:2], dims.heads, dims.head), x.dtype)
        kernels = (choose(normal_form(s).scheme, "auto", q, length) for s in self.layers)
        return pay(length, length) and set(kernels) == {"dense"}
