"""What every model is given: tokens, which of them are real, and what else a task tells of them.

A model is an `nnx.Module` made from `(scheme, shape, key)` and called as `model(inputs, key, *, train=False)`, which
gives logits `[B, T, classes]`. The key draws what is random in a call: positions, and in training what dropout leaves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxtyping import Array, Bool, Int


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
