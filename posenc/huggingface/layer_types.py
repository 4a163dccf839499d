"""The layers of Hugging Face's models: which see a window alone, and which turn queries and keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.huggingface.model_types import ASKED, CHUNKED, EVERY, FULL, HALF_NOPE, LLAMA4, SLIDING, first

Config = Mapping[str, Any]


def read_layers(config: Config) -> tuple[list[str], list[bool]]:
    """For each layer whether it sees everything or a window, and whether its queries and keys are turned."""
    given = config.get("layer_types")
    depth = first(config.get("num_hidden_layers"), 1 if given is None else len(given))
    if depth < 1:
        raise ValueError(f"This config has {depth} layers; it must have at least 1.")
    if given is not None and len(given) != depth:
        raise ValueError(f"layer_types has {len(given)} entries for {depth} layers; give one for each.")
    turned = _turned(config, depth)
    types = _types(config, turned) if given is None else list(given)
    if odd := sorted(set(types) - {FULL, SLIDING}):
        raise ValueError(f"Layers of the type {odd[0]!r} have no mask here; known are {FULL!r} and {SLIDING!r}.")
    return types, [t == SLIDING for t in types] if config.get("model_type") == "cohere2" else turned


def _types(config: Config, turned: list[bool]) -> list[str]:
    """The type of each layer where the config does not list them."""
    kind, slides = config.get("model_type"), window(config) is not None
    every = config.get("sliding_window_pattern", EVERY.get(kind))
    if kind in LLAMA4:
        return [CHUNKED if turns else FULL for turns in turned]
    if kind == "smollm3":
        return [SLIDING if slides and not turns else FULL for turns in turned]
    if every is not None:
        slides = slides or (kind in EVERY and "sliding_window" not in config)  # where left out, as wide as in the code
        return [SLIDING if slides and here else FULL for here in _but_one_in(every, len(turned))]
    start = config.get("max_window_layers", ASKED.get(kind, 0))
    return [SLIDING if slides and n >= start else FULL for n in range(len(turned))]


def _turned(config: Config, depth: int) -> list[bool]:
    """For each layer whether its queries and keys are turned."""
    if given := config.get("no_rope_layers"):  # an empty list is none, in released configs of Llama 4
        if len(given) != depth:
            raise ValueError(f"no_rope_layers has {len(given)} entries for {depth} layers; give one for each.")
        return [bool(turns) for turns in given]
    if config.get("model_type") not in HALF_NOPE:
        return [True] * depth
    return _but_one_in(config.get("no_rope_layer_interval", 4), depth)


def _but_one_in(every: Any, depth: int) -> list[bool]:
    """True for all layers but the last of each so many."""
    if not isinstance(every, int) or every < 1:
        raise ValueError(f"One layer in {every!r} is said to differ; that is a whole number of at least 1.")
    return [bool((n + 1) % every) for n in range(depth)]


def window(config: Config) -> Any:
    """How many keys a layer with a window sees, None where the model has no windows."""
    asked = config.get("use_sliding_window", config.get("model_type") not in ASKED)
    return config.get("sliding_window") if asked else None
