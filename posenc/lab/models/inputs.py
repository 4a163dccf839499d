"""What every model is given: tokens, which of them are real, and what else a task tells of them.

A model is an `nnx.Module` made from `(scheme, shape, key)` and called as `model(inputs, key, *, train=False)`, which
gives logits `[B, T, classes]`. The key draws what is random in a call: positions, and in training what dropout leaves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from posenc.lab.models.draws import meant


class Inputs(NamedTuple):
    """Sequences as a model sees them. Where `valid` is False there is padding, which nobody sees."""

    tokens: Int[Array, "B T"]
    valid: Bool[Array, "B T"]
    coords: dict[str, Int[Array, "B T"]] = {}
    source: Int[Array, "B S"] | None = None
    """What an encoder reads, where a task has one beside the tokens that are told and predicted."""
    source_valid: Bool[Array, "B S"] | None = None


def inputs(batch: Any) -> Inputs:
    """What a model is given of a task's batch."""
    return Inputs(batch.tokens, batch.valid, batch.coords, batch.source, batch.source_valid)


def told(inputs: Inputs) -> dict[str, Any]:
    """What coordinates are made from: the index, the length of each sequence, each token's own number, 0 in padding,
    and what the task tells."""
    index = np.arange(inputs.tokens.shape[-1], dtype=np.int32)  # known while tracing, so that tables can refuse it
    token = jnp.where(inputs.valid, inputs.tokens, 0)
    return {"index": index, "length": inputs.valid.sum(-1), "token": token} | inputs.coords


def of_source(inputs: Inputs, key: PRNGKeyArray) -> tuple[Inputs, PRNGKeyArray]:
    """The source as a sequence of its own, and the key of what is random there."""
    if inputs.source is None or inputs.source_valid is None:
        raise ValueError("There is no source to read; take a task that has one, such as s2s_copy, or model=decoder.")
    return Inputs(inputs.source, inputs.source_valid), meant(key, "source")
