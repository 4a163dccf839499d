"""The layers of Hugging Face's models: which have a window, and which rotate queries and keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from posenc.core.compose import Pattern
from posenc.huggingface.facts import CHUNKED, FULL, SLIDING, Facts
from posenc.huggingface.kinds import DEEPEST
from posenc.huggingface.settings import Settings, first
from posenc.language.echo import echoed

Config = Mapping[str, Any]
LETTERS = {"F": FULL, "S": SLIDING, "L": "linear_attention", "C": CHUNKED}
CHUNK = 8192
"""The default of attention_chunk_size."""
WITHOUT_ATTENTION = ("linear_attention", "mamba", "conv", "recurrent")
"""Types of layers of hybrids that mix tokens in another way."""


@dataclass(frozen=True)
class LayerType:
    """One layer of attention: its label in layer_types, its window in keys, and whether it rotates."""

    label: str
    window: int | None
    turns: bool


def read_layers(config: Settings, facts: Facts) -> list[LayerType]:
    """All layers of attention, in order. Layers of hybrids that are none are left out."""
    listed = config.get("layer_types") if facts.windows == "listed" else None
    each = listed, config.get("no_rope_layers") or None, config.get("layer_rope_theta")
    listing = next((len(entries) for entries in each if entries is not None), None)
    depth = first(config.get("num_hidden_layers"), config.get("n_layer"), listing)
    if depth is not None:
        return _layers(config, facts, depth, listed)
    layers = _layers(config, facts, DEEPEST, None)
    if len(set(layers)) > 1:
        raise ValueError("num_hidden_layers is left out, and the layers of this model type differ; give it.")
    return layers[:1]


def _layers(config: Settings, facts: Facts, depth: int, listed: list[str] | None) -> list[LayerType]:
    if listed is not None and len(listed) != depth:
        raise ValueError(f"layer_types has {len(listed)} entries for {depth} layers; give one for each.")
    width = window(config, facts)
    rotates = _rotating_layers(config, facts, depth)
    labels = _labels(config, facts, depth, width, rotates) if listed is None else list(listed)
    if facts.last:
        labels[-1] = LETTERS[facts.last]
    if facts.turns == "windowed" and not (facts.all_without_window and width is None):
        rotates = [label == SLIDING for label in labels]
    pairs = [(a, b) for a, b in zip(labels, rotates, strict=True) if a not in WITHOUT_ATTENTION]
    served = [FULL, SLIDING] + [CHUNKED] * (LETTERS[facts.layers[:1] or "F"] == CHUNKED)
    if odd := sorted({label for label, _ in pairs} - {*served}):
        raise ValueError(f"Layers of the type {echoed(odd[0])} are not read; posenc reads {', '.join(served)}.")
    if any(label == CHUNKED for label, _ in pairs):
        _leave_chunks(config)
    if not pairs:
        raise ValueError(f"None of the {depth} layers of this config is attention; it has no scheme.")
    reach = _reach(config, facts, width) if any(label == SLIDING for label, _ in pairs) else None
    return [LayerType(label, reach if label == SLIDING else None, here) for label, here in pairs]


def _leave_chunks(config: Settings) -> None:
    """Say which mask layers of chunks need; a scheme has windows alone."""
    if (size := config.get("attention_chunk_size", CHUNK)) is None:
        raise ValueError("attention_chunk_size is None, and layers of chunked_attention need it; give it.")
    config.left["attention_chunk_size"] = (
        f"on layers of chunked_attention, by default those that rotate, a token sees its chunk of {size} tokens: pass"
        f" mask=('causal', i // {size} == j // {size}) to attend there, or with a cache segments=1 + i // {size} and"
        " positions=i, with i and j counted from where a text begins"
    )


def window(config: Config, facts: Facts) -> int | None:
    """The window of a model as its config counts it; None where the model has no windows."""
    if facts.windows == "none":
        return None
    if facts.switch and not config.get("use_sliding_window", False):
        return None
    if facts.before and (count := config.get(facts.before)) is not None:
        return count + 1
    if facts.half_of and "sliding_window" not in config:
        double = config.get(facts.half_of, 2 * cast(int, facts.window))
        return double and double // 2
    return config["sliding_window"] if "sliding_window" in config else facts.window


def _reach(config: Config, facts: Facts, width: Any) -> int:
    """The window of a layer, as posenc counts it: all keys that a query sees, its own among them."""
    if facts.switch and not config.get("use_sliding_window", False):
        raise ValueError(
            "layer_types has a layer with a window, but use_sliding_window is not true; make it true, or list no such"
            " layer."
        )
    if isinstance(width, bool) or not isinstance(width, int) or width < (0 if facts.side == "both" else 1):
        name = facts.half_of if facts.half_of and "sliding_window" not in config else "sliding_window"
        raise ValueError(f"A layer has a window, but {name} is {echoed(width)}; it must be a number of keys.")
    halved = bool(facts.both_sides and config.get(facts.both_sides))
    width = width // 2 + 1 if halved else width
    if facts.side == "both" or not config.get("is_causal", True):
        return 2 * width + 1
    return 2 * width - 1 if halved else width


def _rotating_layers(config: Settings, facts: Facts, depth: int) -> list[bool]:
    """For each layer whether it rotates, where that does not depend on its window."""
    if facts.turns == "listed":
        return no_rope_layers(config, depth)
    bases = config.get("layer_rope_theta") if facts.turns == "bases" else None
    if bases is None:
        periodic = facts.turns == "bases" and facts.backwards
        return [letter == "S" for letter in _backwards("FSSS", depth)] if periodic else [True] * depth
    if len(bases) != depth:
        raise ValueError(f"layer_rope_theta has {len(bases)} entries for {depth} layers; give one for each.")
    return [bool(base) for base in bases]


def _backwards(period: str, depth: int) -> str:
    """A letter for each layer, counted from the last one."""
    return (period * depth)[:depth][::-1]


def no_rope_layers(config: Settings, depth: int) -> list[bool]:
    """For each layer whether it rotates, from the list, or from the period of those that do not."""
    if listed := config.get("no_rope_layers"):  # released configs of Llama 4 have an empty list for the default
        if len(listed) != depth:
            raise ValueError(f"no_rope_layers has {len(listed)} entries for {depth} layers; give one for each.")
        return [bool(here) for here in listed]
    period = config.get("no_rope_layer_interval", 4)
    return [letter == "S" for letter in _letters("no_rope_layer_interval", period, depth, "SSSF")]


def _labels(config: Config, facts: Facts, depth: int, width: Any, rotates: list[bool]) -> list[str]:
    """The type of each layer where the config does not list them."""
    if facts.windows == "all":
        return [FULL if width is None else SLIDING] * depth
    if facts.switch and width is None:
        return [FULL] * depth
    if facts.turns == "listed":
        special = LETTERS[facts.layers]  # of layers without rotation, if it is a window; else of those with one
        return [special if here != (special == SLIDING) else FULL for here in rotates]
    if not facts.layers:
        raise ValueError("The layers of this model type have no period; give layer_types, an entry for each.")
    period = config.get(facts.period) if facts.period else None
    if facts.backwards:
        return [LETTERS[letter] for letter in _backwards(facts.layers, depth)]
    labels = [LETTERS[letter] for letter in _letters(facts.period, period, depth, facts.layers)]
    bounds = {} if "max_window_layers" in facts.ignores else config
    start = facts.start and bounds.get("max_window_layers", facts.start)
    stop = facts.stop and bounds.get("max_window_layers", facts.stop)
    early, late = slice(0, start or 0), slice(depth if stop is None else stop, depth)
    for full in (early, late):
        labels[full] = [FULL] * len(labels[full])
    return labels


def _letters(name: str | None, period: Any, depth: int, usual: str) -> str:
    """A letter for each layer. `period` is None for the usual period, the length of a like one, or its letters."""
    if isinstance(period, str) and period and set(period) <= {"L", "G"}:
        usual = period.replace("L", "S").replace("G", "F")  # local and global, as EXAONE writes them
    elif period is not None:
        if not isinstance(period, int) or isinstance(period, bool) or period < 1:
            raise ValueError(
                f"{name} is {echoed(period)}; it is the period of the layers that differ, a whole number of at least 1."
            )
        others = next(letter for letter in usual if letter != "F") * min(period - 1, depth)
        usual = "F" + others if usual.startswith("F") else others + "F"
    return (usual * depth)[:depth]


def period(layers: list[Any]) -> Any:
    """The shortest pattern of these layers; one scheme if they are all the same."""
    sizes = (n for n in range(1, len(layers) + 1) if len(layers) % n == 0)
    size = next(n for n in sizes if layers == layers[:n] * (len(layers) // n))
    return layers[0] if size == 1 else Pattern(tuple(layers[:size]))
