"""Interface of every model: `Shape`, `build`, `Inputs`.

A model is an `nnx.Module` built from `(scheme, shape, key)` and called as `model(inputs, key, *, train=False)`, which
returns logits `[B, T, classes]`. The key draws what is random in a call: random positions, and dropout in training.

It makes its weight matrices as `lab.models.weights.Weight`, on which weight decay acts.

A model that can generate text token by token has two more functions. `begin(inputs, key, most)` returns the initial
state: empty caches for as many tokens as `inputs` has room for, when a call adds at most `most` of them.
`proceed(state, inputs, key, first, new)` returns the logits of the `new` tokens from index `first` on, equal to those
of a full pass, and the next state. `inputs` holds the text so far.
"""

from __future__ import annotations

import importlib
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from posenc.core.scheme import Dims
from posenc.lab.models.draws import named_key
from posenc.lab.models.kinds import EncoderModel, Model
from posenc.lab.models.stems import Stem


class Shape(NamedTuple):
    """Facts that decide a model, apart from its scheme; `dims.causal` decides which tokens a token sees."""

    dims: Dims
    depth: int
    hidden: int | None
    vocab: int
    classes: int
    norm: Literal["pre", "post"] = "pre"
    dtype: Any = jnp.float32
    stem: Stem | None = None
    attention: str = "scaled_dot"
    """How scores are computed: see `posenc.lab.models.attentions`."""
    dropout: float = 0.0
    """The share of features that dropout sets to zero in training."""
    model: Model = EncoderModel()
    """The kind of model, for its settings; encoder and decoder differ in `dims.causal` alone."""


class Inputs(NamedTuple):
    """Sequences as a model reads them. `valid` is False at padding, which never affects other tokens."""

    tokens: Int[Array, "B T"]
    valid: Bool[Array, "B T"]
    coords: dict[str, Int[Array, "B T"]] = {}
    source: Int[Array, "B S"] | None = None
    """The sequence that an encoder reads, for tasks that have one apart from the predicted tokens."""
    source_valid: Bool[Array, "B S"] | None = None

    def reading(self, names: tuple[str, ...]) -> Inputs:
        """Return the inputs with only these coordinates of the task."""
        return self._replace(coords={name: self.coords[name] for name in names})


def build(scheme: Any, shape: Shape, key: PRNGKeyArray) -> Any:
    """A new model; raises `ValueError` where scheme and sizes do not fit each other."""
    module, _, name = shape.model.builder.rpartition(".")
    return getattr(importlib.import_module(f"posenc.lab.models.{module}"), name)(scheme, shape, key)


def inputs(batch: Any) -> Inputs:
    """The part of a task's batch that a model reads."""
    return Inputs(batch.tokens, batch.valid, batch.coords, batch.source, batch.source_valid)


def coordinate_inputs(inputs: Inputs) -> dict[str, Any]:
    """Return the inputs of coordinates: the index, the length of each sequence, the token ids (0 at padding), and the
    coordinates that the task provides."""
    index = np.arange(inputs.tokens.shape[-1], dtype=np.int32)  # known while tracing, so that tables can refuse it
    token = jnp.where(inputs.valid, inputs.tokens, 0)
    return {"index": index, "length": inputs.valid.sum(-1), "token": token} | inputs.coords


def source_inputs(inputs: Inputs, key: PRNGKeyArray) -> tuple[Inputs, PRNGKeyArray]:
    """The source as a sequence by itself, and the key for what is random in it."""
    if inputs.source is None or inputs.source_valid is None:
        raise ValueError("There is no source to read; take a task that has one, such as s2s_copy, or model=decoder.")
    return Inputs(inputs.source, inputs.source_valid), named_key(key, "source")
