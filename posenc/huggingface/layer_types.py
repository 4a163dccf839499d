"""The layers of Hugging Face's models: which have a window, and which rotate queries and keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.huggingface.model_types import (
    CHUNKED,
    FULL,
    FULL_EVERY,
    LLAMA4,
    OPTIONAL_WINDOW,
    PARTLY_NOPE,
    SLIDING,
    first,
)

Config = Mapping[str, Any]


def read_layers(config: Config) -> tuple[list[str], list[bool]]:
    """The type of each layer, with or without a window, and whether it rotates queries and keys."""
    listed = config.get("layer_types")
    depth = first(config.get("num_hidden_layers"), 1 if listed is None else len(listed))
    if depth < 1:
        raise ValueError(f"This config has {depth} layers; give it at least 1.")
    if listed is not None and len(listed) != depth:
        raise ValueError(f"layer_types has {len(listed)} entries for {depth} layers; give one for each.")
    rotates = _rotates(config, depth)
    types = _types(config, rotates) if listed is None else list(listed)
    if odd := sorted(set(types) - {FULL, SLIDING}):
        raise ValueError(f"Layers of the type {odd[0]!r} are not supported; posenc reads {FULL!r} and {SLIDING!r}.")
    return types, [t == SLIDING for t in types] if config.get("model_type") == "cohere2" else rotates


def _types(config: Config, rotates: list[bool]) -> list[str]:
    """The type of each layer where the config does not list them."""
    kind, slides = config.get("model_type"), window(config) is not None
    every = config.get("sliding_window_pattern", FULL_EVERY.get(kind))
    if kind in LLAMA4:
        return [CHUNKED if here else FULL for here in rotates]
    if kind == "smollm3":
        return [SLIDING if slides and not here else FULL for here in rotates]
    if every is not None:
        slides = slides or (
            kind in FULL_EVERY and "sliding_window" not in config
        )  # left out, it has the default of the code
        return [SLIDING if slides and here else FULL for here in _but_one_in(every, len(rotates))]
    start = config.get("max_window_layers", OPTIONAL_WINDOW.get(kind, 0))
    return [SLIDING if slides and n >= start else FULL for n in range(len(rotates))]


def _rotates(config: Config, depth: int) -> list[bool]:
    """For each layer whether it rotates queries and keys."""
    if listed := config.get("no_rope_layers"):  # released configs of Llama 4 have an empty list for the default
        if len(listed) != depth:
            raise ValueError(f"no_rope_layers has {len(listed)} entries for {depth} layers; give one for each.")
        return [bool(here) for here in listed]
    if config.get("model_type") not in PARTLY_NOPE:
        return [True] * depth
    return _but_one_in(config.get("no_rope_layer_interval", 4), depth)


def _but_one_in(every: Any, depth: int) -> list[bool]:
    """True for all layers but every `every`-th one."""
    if not isinstance(every, int) or every < 1:
        raise ValueError(f"The period of the layers that differ is {every!r}; it must be a whole number of at least 1.")
    return [bool((n + 1) % every) for n in range(depth)]


def window(config: Config) -> Any:
    """The number of keys in the window of a layer; None where the model has no windows."""
    used = config.get("use_sliding_window", config.get("model_type") not in OPTIONAL_WINDOW)
    return config.get("sliding_window") if used else None
