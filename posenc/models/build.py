"""Builds the model that a shape names."""

from __future__ import annotations

import importlib
from typing import Any

from jaxtyping import PRNGKeyArray

from posenc.models.shape import Shape


def build(scheme: Any, shape: Shape, key: PRNGKeyArray) -> Any:
    """A model, called as `model(inputs, key, *, train=False)`; refuses what the scheme and the sizes do not allow."""
    module, _, name = shape.model.builder.rpartition(".")
    return getattr(importlib.import_module(f"posenc.models.{module}"), name)(scheme, shape, key)
