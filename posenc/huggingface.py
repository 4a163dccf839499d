"""Hugging Face's `config.json` and schemes, both ways, and the two orders of features in a head.

Nothing is imported from transformers: a config is a dict. Both generations are read, version 5 (`rope_parameters`, for
all layers or for each type of layer) and version 4 (`rope_theta`, `rope_scaling`), and either is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from posenc.compose import Pattern, Windowed
from posenc.rope_parameters import read, write
from posenc.rotation import Layout, turned_width
from posenc.schemes.alibi import ALiBi
from posenc.schemes.learned import Learned
from posenc.schemes.nope import NoPE
from posenc.schemes.t5 import T5
from posenc.schemes.temperature import Llama4

FULL, SLIDING = "full_attention", "sliding_attention"
INTERLEAVED = frozenset("codegen cohere cohere2 ernie4_5 glm glm4 gptj helium llama4 llama4_text".split())
"""Models whose code turns feature 2i with 2i + 1; the layout stands in no config."""
EVERY = {"cohere2": 4, "gemma2": 2, "gemma3": 6, "gemma3_text": 6, "gpt_oss": 2, "olmo3": 4}
"""Models without `layer_types` in older configs: one layer in so many sees everything, the others a window."""
HALF_NOPE = frozenset({"llama4", "llama4_text", "smollm3"})
"""Models that turn nothing in one layer of so many, 4 unless said."""


def from_hf(config: Mapping[str, Any]) -> Any:
    """The scheme of a model, from its `config.json` as a dict: `from_hf(json.load(open("config.json")))`.

    A pattern of layers, `[...]`, where they differ, each with its window. Lengths come from the config, so most schemes
    need no `posenc.bind`. Layouts of query and key are those of the model's code; `permute` changes one to the other.
    Normalised queries, logits' caps, sinks and masks other than windows are no matter of position and left aside.
    Raises `ValueError` for what posenc has no scheme for, and `TypeError` for what is no dict.
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"config is of type {type(config).__name__}; give the dict that config.json holds.")
    config = config.get("text_config") or config
    kind = config.get("model_type")
    if kind in WITHOUT_ROTATION and (scheme := WITHOUT_ROTATION[kind](config)) is not None:
        return scheme
    if "qk_rope_head_dim" in config:
        raise ValueError("This model turns a part of each head that it projects apart; posenc has no such attention.")
    types = _layer_types(config)
    sets = read(config, frozenset(types), "interleaved" if kind in INTERLEAVED else "half")
    turned = _turned(config, types)
    layers = [_layer(config, sets[label] if here else None, label) for label, here in zip(types, turned, strict=True)]
    size = next(
        n for n in range(1, len(layers) + 1) if len(layers) % n == 0 and layers == layers[:n] * (len(layers) // n)
    )
    return layers[0] if size == 1 else Pattern(tuple(layers[:size]))


def to_hf(scheme: Any, *, layers: int | None = None, model_type: str | None = None, version: int = 5) -> dict[str, Any]:
    """The positional part of a `config.json`. `from_hf` reads back the same scheme, or one of the same numbers:
    `rope @ scale(4.0)` comes back as `pi`.

    `layers` is the depth, a multiple of a pattern's period, and that period unless given. `version` 4 writes
    `rope_theta` and `rope_scaling`, and 5 `rope_parameters`. A config does not say the layout: the "interleaved" one
    needs the `model_type` of a model that has it. Raises `ValueError` where Hugging Face has no words for a scheme.
    """
    if version not in (4, 5):
        raise ValueError(f"version is {version!r}; a config is written as transformers 4 or 5 has it.")
    for kind, said in ((ALiBi, _say_alibi), (T5, _say_t5), (Learned, _say_learned)):
        if isinstance(scheme, kind):
            return said(scheme)
    period = scheme.layers if isinstance(scheme, Pattern) else (scheme,)
    if isinstance(scheme, Pattern) and scheme.input is not None:
        raise ValueError("A config has no word for what stands before a list of layers; give the list alone.")
    depth = len(period) if layers is None else layers
    if depth < 1 or depth % len(period):
        raise ValueError(f"layers is {layers!r}; it is a multiple of the period, {len(period)}.")
    every = [period[n % len(period)] for n in range(depth)]
    inner = [s.scheme if isinstance(s, Windowed) else s for s in every]
    types = [SLIDING if isinstance(s, Windowed) else FULL for s in every]
    out: dict[str, Any] = {} if model_type is None else {"model_type": model_type}
    if isinstance(scheme, Pattern) or layers is not None:
        out |= {"num_hidden_layers": depth, "layer_types": types}
    widths = {s.keys for s in every if isinstance(s, Windowed)}
    if len(widths) > 1:
        raise ValueError(f"A config has one sliding_window, and these layers have {sorted(widths)}; give them one.")
    out |= {"sliding_window": widths.pop()} if widths else {}
    return out | _say_sets(types, inner, model_type, version)


def permute(a: Any, to: Layout, *, fraction: float = 1.0, axis: int = -1) -> Any:
    """Query or key features, or the weights that make them, from the other layout `to` this one.

    `a` has the features of one head along `axis`: `[width, heads, head]` weights, `[..., L, heads, head]` queries.
    (PyTorch's `[heads * head, width]` is `[heads, head, width]` after a reshape, and the axis 1.) `fraction` is that of
    the scheme. Scores stay what they were if queries and keys are both permuted.
    """
    if to not in ("half", "interleaved"):
        raise ValueError(f"to is {to!r}; it is 'half' or 'interleaved'.")
    head = a.shape[axis]
    width = turned_width("permute", fraction, head)
    order = np.arange(head)
    pairs = np.arange(width).reshape(-1, 2) if to == "half" else np.arange(width).reshape(2, -1)
    order[:width] = pairs.T.reshape(-1)
    return a.take(order, axis)


def _layer_types(config: Mapping[str, Any]) -> list[str]:
    """For each layer whether it sees everything or a window."""
    given, depth = config.get("layer_types"), config.get("num_hidden_layers")
    if given is not None:
        if odd := sorted(set(given) - {FULL, SLIDING}):
            raise ValueError(f"Layers of the type {odd[0]!r} have no mask here; known are {FULL!r} and {SLIDING!r}.")
        return list(given)
    depth, kind = depth or 1, config.get("model_type")
    slides = config.get("sliding_window") is not None and config.get("use_sliding_window", True)
    every = config.get("sliding_window_pattern", EVERY.get(kind))
    if not slides or kind in HALF_NOPE:
        return [FULL] * depth
    if every is not None:
        return [SLIDING if (n + 1) % every else FULL for n in range(depth)]
    return [SLIDING if n >= config.get("max_window_layers", 0) else FULL for n in range(depth)]


def _turned(config: Mapping[str, Any], types: list[str]) -> list[bool]:
    """For each layer whether its queries and keys are turned."""
    if config.get("model_type") == "cohere2":
        return [label == SLIDING for label in types]
    given = config.get("no_rope_layers")
    if given:
        if len(given) != len(types):
            raise ValueError(f"no_rope_layers has {len(given)} entries for {len(types)} layers; give one for each.")
        return [bool(turns) for turns in given]
    every = config.get("no_rope_layer_interval", 4) if config.get("model_type") in HALF_NOPE else None
    return [every is None or bool((n + 1) % every) for n in range(len(types))]


def _layer(config: Mapping[str, Any], scheme: Any, label: str) -> Any:
    """One layer's scheme, with its window; without a rotation what its model has instead."""
    if scheme is None:
        warm = config.get("model_type") in ("llama4", "llama4_text") and config.get("attn_temperature_tuning", True)
        scheme = Llama4(config.get("attn_scale", 0.1), int(config.get("floor_scale", 8192))) if warm else NoPE()
    if label == FULL:
        return scheme
    if not isinstance(width := config.get("sliding_window"), int):
        raise ValueError(f"A layer slides, but sliding_window is {width!r}; it is a number of keys.")
    return Windowed(scheme, width)


def _say_sets(types: list[str], schemes: list[Any], model_type: str | None, version: int) -> dict[str, Any]:
    """The rotary settings: one set, one for each type of layer, or one and a list of the layers that have it."""
    if all(isinstance(s, NoPE) for s in schemes):
        raise ValueError("A config that turns nothing in any layer says so by its model alone; there is none to write.")
    sets: dict[str, set[Any]] = {}
    for label, s in zip(types, schemes, strict=True):
        sets.setdefault(label, set()).add(s)
    turning = {s for s in schemes if not isinstance(s, NoPE)}
    if len(turning) == 1:
        out = write(turning.pop(), model_type in INTERLEAVED, version)
        if any(isinstance(s, NoPE) for s in schemes):
            out["no_rope_layers"] = [int(not isinstance(s, NoPE)) for s in schemes]
        return out
    if version == 4:
        raise ValueError("A config of version 4 has one set of rotary settings for all layers; write version 5.")
    if any(len(found) > 1 for found in sets.values()):
        raise ValueError(
            "A config has one set of rotary settings for layers with a window and one for those without, and these"
            " layers differ in more; give all layers of a kind the same scheme."
        )
    said = {
        label: {} if isinstance(s, NoPE) else write(s, model_type in INTERLEAVED, 5) for label, (s,) in sets.items()
    }
    out = {"rope_parameters": {label: one.pop("rope_parameters", None) for label, one in said.items()}}
    around = {name: value for one in said.values() for name, value in one.items()}
    if any(one.items() - around.items() for one in said.values()):
        raise ValueError("A config has one max_position_embeddings, and these layers have several; give them one.")
    return out | around


def _bloom(config: Mapping[str, Any]) -> Any:
    return ALiBi()


def _falcon(config: Mapping[str, Any]) -> Any:
    return ALiBi() if config.get("alibi") else None


def _mpt(config: Mapping[str, Any]) -> Any:
    about = config.get("attn_config") or {}
    if about.get("alibi_bias_max", 8) != 8:
        raise ValueError(f"alibi_bias_max is {about['alibi_bias_max']}; the slopes here are those of 8.")
    return ALiBi() if about.get("alibi", True) else None if about.get("rope") else Learned()


def _t5(config: Mapping[str, Any]) -> Any:
    return T5(config.get("relative_attention_num_buckets", 32), config.get("relative_attention_max_distance", 128))


def _table(config: Mapping[str, Any]) -> Any:
    if (kind := config.get("position_embedding_type", "absolute")) != "absolute":
        raise ValueError(f"position_embedding_type is {kind!r}; only 'absolute' is read.")
    return Learned()


WITHOUT_ROTATION: dict[Any, Callable[[Mapping[str, Any]], Any]] = {
    "bloom": _bloom, "falcon": _falcon, "mpt": _mpt, "t5": _t5, "mt5": _t5, "bert": _table, "distilbert": _table,
    "electra": _table, "gpt2": _table, "gpt_bigcode": _table,
}  # fmt: skip
"""Models that turn nothing, or not always."""


def _say_alibi(scheme: ALiBi) -> dict[str, Any]:
    if scheme != ALiBi():
        raise ValueError(f"Hugging Face's ALiBi is causal and symmetric; it has no word for {scheme!r}.")
    return {"model_type": "bloom"}


def _say_t5(scheme: T5) -> dict[str, Any]:
    buckets, reach = scheme.buckets, scheme.reach
    if scheme != T5(buckets, reach):
        raise ValueError(f"Hugging Face's T5 has buckets and reach alone; it has no word for {scheme!r}.")
    return {"model_type": "t5", "relative_attention_num_buckets": buckets, "relative_attention_max_distance": reach}


def _say_learned(scheme: Learned) -> dict[str, Any]:
    if scheme != Learned():
        raise ValueError(f"Hugging Face's tables of positions have no settings; it has no word for {scheme!r}.")
    return {"model_type": "gpt2"}
