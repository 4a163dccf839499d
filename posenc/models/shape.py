"""The sizes of a model, as its builder is told them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import jax.numpy as jnp

from posenc.models.kinds import Encoder, Model
from posenc.models.stems import Stem
from posenc.scheme import Dims


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
    """How scores are made: see `posenc.models.attentions`."""
    dropout: float = 0.0
    """The share of features that training leaves out."""
    model: Model = Encoder()
    """The kind of model, for its settings; encoder and decoder differ in `dims.causal` alone."""
