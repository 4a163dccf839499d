"""The sizes of a model, and the function that builds a model from them."""

from __future__ import annotations

import importlib
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from posenc.core.scheme import Dims
from posenc.lab.models.kinds import Encoder, Model
from posenc.lab.models.stems import Stem


class Shape(NamedTuple):
    """What decides a model, beside its scheme; `dims.causal` says what a token sees."""

    dims: Dims
    depth: int
    hidden: int | None
    vocab: int
    classes: int
    norm: Literal["pre", "post"] = "pre"
    dtype: Any = jnp.float32
    stem: Stem | None = None
    attention: str = "scaled_dot"
    """How scores are made: see `posenc.lab.models.attentions`."""
    dropout: float = 0.0
    """The share of features that training leaves out."""
    model: Model = Encoder()
    """The kind of model, for its settings; encoder and decoder differ in `dims.causal` alone."""


def build(scheme: Any, shape: Shape, key: PRNGKeyArray) -> Any:
    """A model, called as `model(inputs, key, *, train=False)`; refuses what the scheme and the sizes do not allow."""
    module, _, name = shape.model.builder.rpartition(".")
    return getattr(importlib.import_module(f"posenc.lab.models.{module}"), name)(scheme, shape, key)
