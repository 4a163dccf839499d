"""Schemes from Hugging Face's `config.json` and back, and conversion between the two layouts of features in a head.

Nothing is imported from transformers: a config is a dict. Two versions are read and written, 5 (`rope_parameters`, for
all layers or for each type of layer) and 4 (`rope_theta`, `rope_scaling`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from posenc.core.compose import Composed, Draw, Pattern, normal_form, windowed, without_window
from posenc.huggingface.layer_types import read_layers, window
from posenc.huggingface.model_types import (
    FULL,
    FULL_EVERY,
    INTERLEAVED,
    LLAMA4,
    OPTIONAL_WINDOW,
    PARTLY_NOPE,
    SLIDING,
    first,
    head_size,
)
from posenc.huggingface.reading import read
from posenc.huggingface.writing import write_layers
from posenc.naming import spec
from posenc.numerics import scaling
from posenc.numerics.rotation import Layout, turned_width
from posenc.schemes.alibi import ALiBi
from posenc.schemes.interpolated import PI
from posenc.schemes.learned import Learned
from posenc.schemes.longrope import LongRoPE
from posenc.schemes.nope import NoPE
from posenc.schemes.rope import RoPE
from posenc.schemes.t5 import T5
from posenc.schemes.temperature import Llama4


def from_hf(config: Mapping[str, Any]) -> Any:
    """The scheme of a model, from its `config.json` as a dict: `from_hf(json.load(open("config.json")))`.

    It is a pattern of layers, `[...]`, where layers differ, each with its window. Lengths come from the config, so most
    schemes need no `posenc.bind`. The layout of query and key is that of the model's code; `permute` converts between
    layouts. Parts of attention that do not concern position are ignored: query normalisation, logit caps, sinks and
    masks other than windows. Raises `ValueError` if posenc has no scheme for the config, and `TypeError` if it is not a
    dict.
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"config is of type {type(config).__name__}; give the dict that config.json holds.")
    config = {"model_type": config.get("model_type"), **(config.get("text_config") or config)}
    kind = config.get("model_type")
    if kind in WITHOUT_ROTATION and (scheme := WITHOUT_ROTATION[kind](config)) is not None:
        return scheme
    if "qk_rope_head_dim" in config:
        raise ValueError(
            "This model rotates a separately projected part of each head (qk_rope_head_dim); posenc does not read it."
        )
    types, rotates = read_layers(config)
    sets = read(config, frozenset(types), "interleaved" if kind in INTERLEAVED else "half")
    return _period([_layer(config, sets[t] if here else None, t) for t, here in zip(types, rotates, strict=True)])


def to_hf(scheme: Any, *, layers: int | None = None, model_type: str | None = None, version: int = 5) -> dict[str, Any]:
    """The positional part of a `config.json`, from which `from_hf` reads the same scheme.

    `rope @ scale(4.0)` is read as `pi`, and a named magnitude of `longrope` as its number: equal, with another name.

    `layers` is the depth, a multiple of a pattern's period; left out, it is that period. `version` 4 writes
    `rope_theta` and `rope_scaling`, and 5 `rope_parameters`. A config does not contain the layout: "interleaved" needs
    the `model_type` of a model that has it. Raises `ValueError` where Hugging Face, or a model of that type, cannot
    express a scheme.
    """
    if version not in (4, 5):
        raise ValueError(f"version is {version!r}; it must be 4 or 5, a version of transformers.")
    out = _write(scheme, layers, model_type, version)
    label = f"A config of model_type={out.get('model_type')!r} cannot express {spec(scheme)}"
    try:
        back = from_hf(out)
    except ValueError as error:
        raise ValueError(f"{label}: {error}") from error
    if back != _plain(scheme):
        raise ValueError(f"{label}; it would be read as {spec(back)}. Name another model_type, or leave it out.")
    return out


def permute(a: Any, to: Layout, *, fraction: float = 1.0, axis: int = -1) -> Any:
    """Query or key features, or the weights that produce them, converted `to` this layout from the other.

    `a` has the features of one head along `axis`: `[width, heads, head]` weights, `[..., L, heads, head]` queries.
    (PyTorch's `[heads * head, width]` is `[heads, head, width]` after a reshape, and the axis 1.) `fraction` is that of
    the scheme. Scores stay the same if queries and keys are both permuted.
    """
    if to not in ("half", "interleaved"):
        raise ValueError(f"to is {to!r}; it must be 'half' or 'interleaved'.")
    head = a.shape[axis]
    width = turned_width("permute", fraction, head)
    order = np.arange(head)
    pairs = np.arange(width).reshape(-1, 2) if to == "half" else np.arange(width).reshape(2, -1)
    order[:width] = pairs.T.reshape(-1)
    return a.take(order, axis)


def _layer(config: Mapping[str, Any], scheme: Any, label: str) -> Any:
    """One layer's scheme with its window; NoPE, or Llama 4's temperature, for a layer without rotation."""
    if scheme is None:
        tuned = config.get("model_type") in LLAMA4 and config.get("attn_temperature_tuning", True)
        scheme = Llama4(config.get("attn_scale", 0.1), int(config.get("floor_scale", 8192))) if tuned else NoPE()
    if label == FULL:
        return scheme
    if not isinstance(width := window(config), int):
        raise ValueError(
            f"A layer has a window, but sliding_window is {width!r}; it must be a number of keys, and"
            " use_sliding_window must be true where a model has that."
        )
    return windowed(scheme, width)


def _period(layers: list[Any]) -> Any:
    """The shortest pattern of these layers; one scheme if they are all the same."""
    sizes = (n for n in range(1, len(layers) + 1) if len(layers) % n == 0)
    size = next(n for n in sizes if layers == layers[:n] * (len(layers) // n))
    return layers[0] if size == 1 else Pattern(tuple(layers[:size]))


def _plain(scheme: Any) -> Any:
    """A scheme under the name with which `from_hf` reads the same numbers."""
    match scheme:
        case Pattern(layers, None):
            return _period([_plain(s) for s in layers])
        case Composed(window=int(keys)):
            return windowed(_plain(without_window(scheme)), keys)
        case Composed(RoPE() as s, (Draw(scale),)) if scale.factor == 1:
            return s
        case Composed(RoPE(p=1) as s, (Draw(scale),)):
            return PI(scale.factor, s.base, s.layout, s.fraction)
        case LongRoPE(magnitude="yarn", factor=factor):
            return dataclasses.replace(scheme, magnitude=scaling.magnitude(factor))
    return scheme


def _write(scheme: Any, layers: int | None, kind: str | None, version: int) -> dict[str, Any]:
    """The config of `to_hf`, before the check that it is read back."""
    for one, write in ((ALiBi, _write_alibi), (T5, _write_t5), (Learned, _write_learned)):
        if isinstance(scheme, one):
            if layers is not None:
                raise ValueError(f"layers is {layers!r}, but no config of {spec(scheme)} lists them; leave it out.")
            return write(scheme) | ({} if kind is None else {"model_type": kind})
    if isinstance(scheme, Pattern) and scheme.input is not None:
        raise ValueError("A config cannot express a scheme added to the input before the layers; give the list alone.")
    period = scheme.layers if isinstance(scheme, Pattern) else (scheme,)
    windows = {keys for s in period if (keys := normal_form(s).window) is not None}
    if len(windows) > 1:
        raise ValueError(f"A config has one sliding_window, and these layers have {sorted(windows)}; give them one.")
    listed = isinstance(scheme, Pattern) or layers is not None
    if not listed and (kind in FULL_EVERY or kind in PARTLY_NOPE or (kind in OPTIONAL_WINDOW and windows)):
        raise ValueError(f"Layers of model_type={kind!r} differ unless a config lists them; give layers, their number.")
    depth = first(layers, len(period))
    if depth < 1 or depth % len(period):
        raise ValueError(f"layers is {layers!r}; it must be a multiple of the period, {len(period)}.")
    every = [period[n % len(period)] for n in range(depth)]
    inner = [without_window(s) for s in every]
    types = [FULL if normal_form(s).window is None else SLIDING for s in every]
    kind = "llama4_text" if kind is None and any(isinstance(s, Llama4) for s in inner) else kind
    out = {} if kind is None else {"model_type": kind}
    out |= {"num_hidden_layers": depth, "layer_types": types} if listed else {}
    out |= {"sliding_window": windows.pop()} if windows else {}
    out |= {"use_sliding_window": True} if kind in OPTIONAL_WINDOW and SLIDING in types else {}
    return out | write_layers(types, inner, kind, version)


def _bloom(config: Mapping[str, Any]) -> Any:
    return ALiBi()


def _falcon(config: Mapping[str, Any]) -> Any:
    if not config.get("alibi"):
        return None
    if (head := head_size(config)) is None:
        raise ValueError("Falcon's slopes depend on the size of a head, which this config lacks; give head_dim.")
    return ALiBi(factor=head**-0.5)  # the code adds penalties before it divides scores by the root of a head's size


def _mpt(config: Mapping[str, Any]) -> Any:
    attention = config.get("attn_config") or {}
    if attention.get("alibi_bias_max", 8) != 8:
        raise ValueError(f"alibi_bias_max is {attention['alibi_bias_max']}; posenc has the slopes of 8 only.")
    return ALiBi() if attention.get("alibi", True) else None if attention.get("rope") else Learned()


def _t5(config: Mapping[str, Any]) -> Any:
    return T5(config.get("relative_attention_num_buckets", 32), config.get("relative_attention_max_distance", 128))


def _table(config: Mapping[str, Any]) -> Any:
    if (kind := config.get("position_embedding_type", "absolute")) != "absolute":
        raise ValueError(f"position_embedding_type is {kind!r}; posenc reads 'absolute' only.")
    return Learned()


WITHOUT_ROTATION: dict[Any, Callable[[Mapping[str, Any]], Any]] = {
    "bloom": _bloom, "falcon": _falcon, "mpt": _mpt, "t5": _t5, "mt5": _t5, "bert": _table, "distilbert": _table,
    "electra": _table, "gpt2": _table, "gpt_bigcode": _table,
}  # fmt: skip
"""Models without a rotation, or with one only in some configs."""


def _write_alibi(scheme: ALiBi) -> dict[str, Any]:
    if scheme != ALiBi():
        raise ValueError(f"Hugging Face's ALiBi has no settings, so it cannot express {scheme!r}.")
    return {"model_type": "bloom"}


def _write_t5(scheme: T5) -> dict[str, Any]:
    buckets, reach = scheme.buckets, scheme.reach
    if scheme != T5(buckets, reach):
        raise ValueError(f"Hugging Face's T5 has buckets and reach only, so it cannot express {scheme!r}.")
    return {"model_type": "t5", "relative_attention_num_buckets": buckets, "relative_attention_max_distance": reach}


def _write_learned(scheme: Learned) -> dict[str, Any]:
    if scheme != Learned():
        raise ValueError(f"Hugging Face's tables of positions have no settings, so they cannot express {scheme!r}.")
    return {"model_type": "gpt2"}
