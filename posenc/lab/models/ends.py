"""The two ends of a model. Embedding, stem and input scheme come before the first layer, the readout after the last."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from posenc.attention.attend import embed
from posenc.coordinates import place
from posenc.core.compose import Pattern, normal_form, parts
from posenc.core.parameters import init, split
from posenc.lab.models.interface import Inputs, Shape, coordinate_inputs
from posenc.lab.models.parts import dropout, linear
from posenc.lab.models.weights import Weight, shared_positional
from posenc.naming import spec

INSIDE = ("locate", "query", "key", "value", "score", "normalize", "value_bias", "output", "scale")
"""The hooks that act within attention."""


class Ends(nnx.Module):
    """A base of models. It holds the parameters outside the layers: `tied`, `embedding`, `readout` and `stem`."""

    input: Any
    """The scheme that acts on the input."""
    shape: Shape

    def _outer(self, rngs: Any, schemes: tuple[Any, ...] = (), features: int | None = None) -> tuple[Any, ...]:
        """Builds the parameters that layers share, the embedding, the readout of `features`, and those of the stem."""
        shape, width = self.shape, self.shape.dims.width
        features = width if features is None else features
        by_name = {tied_name(s): s for s in (self.input, *schemes) if s is not None}
        tied = {name: split(s, init(s, rngs.params(), shape.dims))[0] for name, s in by_name.items()}
        only = rngs.params.draw
        classes = only.classes if shape.classes else None  # a reader has no readout
        readout = rngs.params.padded_normal((features, shape.classes), None, classes) * features**-0.5
        # not unit normal: tokens would drown positions in learned tables, which start at 0.02
        embedding = rngs.params.padded_normal((shape.vocab, width), only.symbols, None) * width**-0.5
        stem = (nnx.Param(shape.stem.init(rngs.params.normal, shape.dims)),) if shape.stem else ()
        return shared_positional(by_name, tied), Weight(embedding), Weight(readout), *stem

    def _set_outer(self, tied: Any, embedding: Any, readout: Any, *stem: Any) -> None:
        self.tied, self.embedding, self.readout = tied, embedding, readout
        if stem:
            (self.stem,) = stem

    def enter(self, inputs: Inputs, key: PRNGKeyArray, train: bool = False) -> Float[Array, "B T D"]:
        """The input of the first layer: embedded tokens, after the stem and the input scheme."""
        x = self.embedding.get_value()[inputs.tokens].astype(self.shape.dtype)
        if self.shape.stem is not None:
            params, causal = self.stem.get_value(), self.shape.dims.causal
            x = jax.vmap(lambda x, s: self.shape.stem(params, x, s, causal))(x, inputs.valid.astype(jnp.int32))
        if self.input is not None:
            shared = self.tied.get_value()[tied_name(self.input)]
            positions = place(self.input, key, coordinate_inputs(inputs), train=train)
            x = embed(self.input, shared, x, positions=positions, segments=inputs.valid)
        return dropout(self.shape.dropout, key, train).at("embedding")(x)

    def leave(self, x: Float[Array, "B T features"]) -> Float[Array, "B T classes"]:
        """Logits, in float32."""
        logits = linear(x, self.readout.get_value())
        return logits.astype(jnp.promote_types(logits.dtype, jnp.float32))


def tied_name(scheme: Any) -> str:
    """The name of the parameters that layers of a scheme share; coordinates and windows have none."""
    return spec(normal_form(scheme).scheme)


def only_input(scheme: Any, shape: Shape) -> Any:
    """The scheme, if it acts on the input alone; raises `ValueError` for others, since this model has no attention."""
    name = shape.model.name
    if isinstance(scheme, Pattern) or normal_form(scheme).window is not None:
        what = "list of layers' schemes" if isinstance(scheme, Pattern) else "window"
        raise ValueError(f"{name!r} has no attention that a {what} could act in; take scheme=nope, or learned.")
    for s in parts(scheme):
        if s.overrides(*INSIDE):
            raise ValueError(
                f"{name!r} has no attention that {s.name!r} could act in; take scheme=nope, or one that acts on the"
                " input, such as sinusoidal or learned."
            )
    return scheme
