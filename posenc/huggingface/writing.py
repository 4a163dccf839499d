"""Schemes as the positional part of a config: which layers have a window or rotate, and the settings of rotations."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, cast

from posenc.core.compose import Composed, Draw, Pattern, normal_form, windowed, without_window
from posenc.huggingface import facts as facts_of
from posenc.huggingface.facts import FULL, SLIDING, Facts
from posenc.huggingface.layer_types import period
from posenc.huggingface.rope_writing import write_rotation
from posenc.language.echo import echoed
from posenc.naming import spec
from posenc.numerics import scaling
from posenc.schemes.alibi import ALiBi
from posenc.schemes.interpolated import PI
from posenc.schemes.learned import Learned
from posenc.schemes.longrope import LongRoPE
from posenc.schemes.nope import NoPE
from posenc.schemes.rope import RoPE
from posenc.schemes.t5 import T5
from posenc.schemes.temperature import Llama4

USUAL = (
    *("llama", "stablelm", "mistral", "qwen3", "exaone4", "smollm3", "gemma3_text", "bloom", "t5", "gpt2"),
    *("llama4_text", "qwen2_vl_text", "qwen3_vl_text", "glm4v_text"),
)
"""The model types that are tried where none is named, the simplest first."""
Config = dict[str, Any]


def to_hf(scheme: Any, layers: int | None, kind: str | None, version: int, read: Callable[[Config], Any]) -> Config:
    """The config of a model type, or of the first usual one, from which the same scheme is read."""
    if kind is not None:
        return _checked(scheme, layers, kind, version, read)
    first: ValueError | None = None
    for usual in USUAL:
        try:
            return _checked(scheme, layers, usual, version, read)
        except ValueError as error:
            first = first or error
    raise ValueError(f"None of {', '.join(USUAL)} can express {spec(scheme)}: {first}") from first


def _checked(scheme: Any, layers: int | None, kind: str, version: int, read: Callable[[Config], Any]) -> Config:
    if not isinstance(kind, str) or kind not in facts_of.types():
        raise ValueError(
            f"model_type={echoed(kind)} is none of the {len(facts_of.types())} types that posenc reads and writes."
        )
    facts = facts_of.types()[kind]
    out = {"model_type": kind} | _write(scheme, layers, kind, facts, version)
    label = f"A config of model_type={echoed(kind)} cannot express {spec(scheme)}"
    try:
        back = read(out)
    except ValueError as error:
        raise ValueError(f"{label}: {error}") from error
    if back != plain(scheme):
        raise ValueError(f"{label}; it would be read as {spec(back)}. Name another model_type, or leave it out.")
    return out


def plain(scheme: Any) -> Any:
    """A scheme under the name with which `from_hf` reads the same numbers."""
    match scheme:
        case Pattern(layers, None):
            return period([plain(s) for s in layers])
        case Composed(window=int(keys)):
            return windowed(plain(without_window(scheme)), keys)
        case Composed(RoPE() as s, (Draw(scale),)) if scale.factor == 1:
            return s
        case Composed(RoPE(p=1) as s, (Draw(scale),)):
            return PI(scale.factor, s.base, s.layout, s.fraction)
        case LongRoPE(magnitude="yarn", factor=factor):
            return dataclasses.replace(scheme, magnitude=scaling.magnitude(factor))
    return scheme


def _write(scheme: Any, layers: int | None, kind: str, facts: Facts, version: int) -> Config:
    """The config before the check that it is read back."""
    writers: tuple[tuple[type, Any], ...] = (ALiBi, _write_alibi), (T5, _write_t5), (Learned, _write_learned)
    for cls, write in writers:
        if isinstance(scheme, cls):
            if layers is not None:
                raise ValueError(f"layers is {layers!r}, but no config of {spec(scheme)} lists them; leave it out.")
            return write(cast(Any, scheme))
    if isinstance(scheme, Pattern) and scheme.input is not None:
        raise ValueError("A config cannot express a scheme added to the input before the layers; give the list alone.")
    layer_schemes = _layers(scheme, layers, kind, facts)
    inner = [without_window(s) for s in layer_schemes]
    types = [FULL if normal_form(s).window is None else SLIDING for s in layer_schemes]
    out: Config = {}
    if isinstance(scheme, Pattern) or layers is not None:
        out["num_hidden_layers"] = len(layer_schemes)
        out |= {"layer_types": types} if facts.windows == "listed" else {}
    out |= _write_window(layer_schemes, facts)
    return out | _write_rotations(types, inner, facts, version)


def _layers(scheme: Any, layers: int | None, kind: str, facts: Facts) -> list[Any]:
    """The scheme of every layer."""
    period = scheme.layers if isinstance(scheme, Pattern) else (scheme,)
    differ = facts.windows == "listed" and (not facts.switch or any(normal_form(s).window for s in period))
    if not isinstance(scheme, Pattern) and layers is None and (differ or facts.turns == "listed"):
        raise ValueError(f"Layers of model_type={kind!r} differ unless a config lists them; give layers, their number.")
    depth = len(period) if layers is None else layers
    if depth < 1 or depth % len(period):
        raise ValueError(f"layers is {layers!r}; it must be a multiple of the period, {len(period)}.")
    return [period[n % len(period)] for n in range(depth)]


def _write_window(layer_schemes: list[Any], facts: Facts) -> Config:
    windows = {keys for s in layer_schemes if (keys := normal_form(s).window) is not None}
    if len(windows) > 1:
        raise ValueError(f"A config has one sliding_window, and these layers have {sorted(windows)}; give them one.")
    if not windows:
        return {"sliding_window": None} if facts.windows == "all" else {}
    old = {new: name for name, new in facts.names.items()}
    keys = windows.pop()
    width = {"past": keys, "both": keys // 2, "halves": keys - 1}[facts.side]
    return {old.get("sliding_window", "sliding_window"): width} | ({"use_sliding_window": True} if facts.switch else {})


def _write_rotations(types: list[str], schemes: list[Any], facts: Facts, version: int) -> Config:
    """The rotary settings of all layers: one set, or one for each type of layer, and the layers without rotation."""
    rotates = [not isinstance(s, NoPE | Llama4) for s in schemes]
    rotary = {s for s, here in zip(schemes, rotates, strict=True) if here}
    if not rotary:
        raise ValueError(
            "None of these layers rotates queries and keys, so a config has no rotary settings; there is none to write."
        )
    if len(rotary) == 1 and not facts.bases:
        return write_rotation(rotary.pop(), facts, version) | _write_without(schemes, rotates, facts)
    if version == 4:
        raise ValueError("A config of version 4 has one set of rotary settings for all layers; write version 5.")
    sets: dict[str, set[Any]] = {}
    for label, s in zip(types, schemes, strict=True):
        sets.setdefault(label, set()).add(s)
    if any(len(rotations) > 1 for rotations in sets.values()):
        raise ValueError(
            "A config has one set of rotary settings for layers with a window and one for those without, and these"
            " layers differ in more; give all layers with a window one scheme, and all others one."
        )
    written = {label: write_rotation(s, facts, 5) if s in rotary else {} for label, (s,) in sets.items()}
    out = {"rope_parameters": {label: settings.pop("rope_parameters", None) for label, settings in written.items()}}
    around = {name: value for settings in written.values() for name, value in settings.items()}
    if any(settings.items() - around.items() for settings in written.values()):
        raise ValueError("A config has one max_position_embeddings, and these layers have several; give them one.")
    return out | around | _write_without(schemes, rotates, facts)


def _write_without(schemes: list[Any], rotates: list[bool], facts: Facts) -> Config:
    """The layers without rotation and their temperature, also where they equal a model's defaults."""
    temperatures = [s for s in schemes if isinstance(s, Llama4)]
    out: Config = {"attn_temperature_tuning": bool(temperatures)} if facts.temperature else {}
    if temperatures:
        out |= {"attn_scale": temperatures[0].strength, "floor_scale": temperatures[0].floor}
    if facts.turns == "listed":
        out["no_rope_layers"] = [int(here) for here in rotates]
    return out


def _write_alibi(scheme: ALiBi) -> Config:
    if scheme != ALiBi():
        raise ValueError(f"Hugging Face's ALiBi has no settings, so it cannot express {scheme!r}.")
    return {}


def _write_t5(scheme: T5) -> Config:
    buckets, reach = scheme.buckets, scheme.reach
    if scheme != T5(buckets, reach):
        raise ValueError(f"Hugging Face's T5 has buckets and reach only, so it cannot express {scheme!r}.")
    return {"relative_attention_num_buckets": buckets, "relative_attention_max_distance": reach}


def _write_learned(scheme: Learned) -> Config:
    if scheme != Learned():
        raise ValueError(f"Hugging Face's tables of positions have no settings, so they cannot express {scheme!r}.")
    return {}
