"""Schemes from Hugging Face's `config.json`, and conversion between the two layouts of features in a head.

Nothing is imported from transformers: a config is a dict, or an object with `to_dict()`. Two versions are read,
5 (`rope_parameters`, for all layers or for each type of layer) and 4 (`rope_theta`, `rope_scaling`). What the code of a
model type does beyond its config stands in `facts.toml`, and `compared.json` has what comparing it with transformers'
own models gave, for every model type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from posenc.core.compose import normal_form, windowed
from posenc.huggingface import facts as facts_of
from posenc.huggingface.facts import Facts
from posenc.huggingface.layer_types import LayerType, period, read_layers
from posenc.huggingface.no_rotation import read_without_rotation
from posenc.huggingface.reading import ConfigReport, read_rotations
from posenc.huggingface.settings import Settings
from posenc.huggingface.turned_values import read_turned_values
from posenc.language.echo import echoed
from posenc.numerics.rotation import Layout, turned_width
from posenc.schemes.nope import NoPE
from posenc.schemes.temperature import Llama4

UNREAD = "the code of this model type does not read it"
__all__ = ["ConfigReport", "from_hf", "permute", "report"]


def from_hf(config: Any, *, like: str | None = None) -> Any:
    """The scheme of a model, from its `config.json` as a dict, or from transformers' config object.

    `from_hf(json.load(open("config.json")))`. It is a pattern of layers, `[...]`, where layers differ, each with its
    window. Lengths come from the config, so most schemes need no `posenc.bind`. The layout of query and key is that of
    the model's code; `permute` converts between layouts. Only model types whose own attention was compared with the
    scheme are read; `like="llama"` reads a config as that type, whatever it says. `report` says what was read and what
    was left aside. Raises `ValueError` where a config cannot be read, and `TypeError` if it is not a config.
    """
    return report(config, like=like).scheme


def report(config: Any, *, like: str | None = None) -> ConfigReport:
    """Report what `from_hf` reads of a config, and from which settings; also those that it leaves aside, and why.

    Raises as `from_hf` does.
    """
    outer = Settings(_as_dict(config), {})
    values, kind = _read_as(outer, like)
    facts = facts_of.types()[kind]
    settings = Settings(values, facts.names)
    scheme = _read(settings, facts)
    used = tuple(name for name in values if name in settings.used)
    return ConfigReport(scheme, outer.get("model_type"), kind, used, _aside(settings, used, facts))


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


def _aside(values: Settings, used: tuple[str, ...], facts: Facts) -> tuple[tuple[str, str], ...]:
    """Return the settings that concern attention and not the scheme, and those that no code reads, with reasons.

    The former are named also where a config leaves them out and their default holds.
    """
    present = [name for name, value in values.items() if value is not None and value is not False and value != 0]
    why = facts_of.aside()
    left = {name: reason for name, reason in why.items() if name in present}
    left |= {name: f"{usual} where left out: {why[name]}" for name, usual in facts.usual.items() if name not in values}
    left |= {name: UNREAD for name in facts_of.positional() if name in present and name not in used}
    return tuple((left | values.left | dict(facts.notes)).items())


def _as_dict(config: Any) -> Mapping[str, Any]:
    if isinstance(config, Mapping):
        return config
    if callable(getattr(config, "to_dict", None)):
        return config.to_dict()
    raise TypeError(
        f"config is of type {type(config).__name__}; give the dict that config.json holds, or a config object of"
        " transformers, which has to_dict()."
    )


def _read_as(outer: Settings, like: str | None) -> tuple[Mapping[str, Any], str]:
    """The settings of the part that reads a text, and the model type whose code they are read by."""
    readable, kind, part = facts_of.types(), outer.get("model_type"), outer.get("text_config")
    if like is not None:
        if not isinstance(like, str) or like not in readable:
            which = f"none of the {len(readable)} model types that posenc reads"
            raise ValueError(f"like is {echoed(like)}, which is {which}.")
        return part or outer, like
    if kind in readable and not part:
        return outer, kind
    if kind in readable:
        raise ValueError(
            f"model_type={echoed(kind)} has no text part, and this config has a text_config; leave it out."
        )
    entry = facts_of.compared().get(str(kind))
    if entry is None:
        raise ValueError(
            f"model_type={echoed(kind)} is not read: it is none of transformers 5.23's; if its code is that of a type"
            " that is read, give that type as like."
        )
    if "refused" in entry:
        raise ValueError(f"model_type={echoed(kind)} is not read: {entry['refused']}.")
    inner = _text_type(kind, entry, Settings(part or {}, {}).get("model_type"))
    if inner not in readable:
        unknown = {"refused": "it is none of transformers 5.23's"}
        why = facts_of.compared().get(inner, unknown).get("refused", "it has parts of its own")
        raise ValueError(
            f"The text part of model_type={echoed(kind)}, of the type {echoed(inner)}, is not read: {why}."
        )
    if part is None and kind not in facts_of.flat():
        raise ValueError(
            f"model_type={echoed(kind)} has the settings of its text part in text_config, which this config lacks; give"
            " it."
        )
    return facts_of.under(kind) | dict(outer if part is None else part), inner


def _text_type(kind: Any, entry: Mapping[str, Any], named: str | None) -> str:
    """The type of the text part of a model of several parts; its code has one, or takes the one that is `named`."""
    if named is None or "any_text" not in entry:
        return entry["text"]
    return facts_of.renamed(kind).get(named, named)


def _read(config: Settings, facts: Facts) -> Any:
    usual = {"rope_theta": facts.base, "partial_rotary_factor": facts.fraction}
    for name in facts.ignores:
        if config.own(name) and config[name] not in (None, {}, usual.get(name)):
            raise ValueError(
                f"The code of this model type ignores {name}, which is {echoed(config[name])}; leave it out."
            )
    for name, others in facts.instead.items():
        if config.get(name) is not None:
            raise ValueError(
                f"{name} is {echoed(config[name])}, which posenc does not read for this model type; give {others}."
            )
    for name, value in facts.fixed.items():
        if config.get(name, value) not in (None, value):
            raise ValueError(
                f"{name} is {echoed(config[name])}; models of this type were compared with {value!r} only."
            )
    if (scheme := read_without_rotation(config, facts)) is not None:
        return scheme
    if facts.scheme == "vo_rope":
        return read_turned_values(config, facts)
    layers = read_layers(config, facts)
    sets = read_rotations(config, {layer.label for layer in layers if layer.turns}, facts)
    if facts.turns == "bases":
        _check_bases(config.get("layer_rope_theta") or [], sets)
    return period([_layer(config, facts, sets.get(layer.label), layer) for layer in layers])


def _check_bases(bases: list[float], sets: dict[str, Any]) -> None:
    """Refuse layers with a base of their own."""
    rotary: list[Any] = [normal_form(scheme).scheme for scheme in sets.values()]
    if odd := {base for base in bases if base} - {scheme.base for scheme in rotary}:
        raise ValueError(
            f"layer_rope_theta has the base {sorted(odd)[0]}, and rope_parameters another one; posenc reads entries"
            " that are 0, for a layer without rotation, or the base of all."
        )


def _layer(config: Settings, facts: Facts, scheme: Any, layer: LayerType) -> Any:
    """One layer's scheme with its window; NoPE, or Llama 4's temperature, for a layer without rotation."""
    if not layer.turns or scheme is None:
        tuned = facts.temperature == "unrotated" and config.get("attn_temperature_tuning", True)
        scheme = Llama4(config.get("attn_scale", 0.1), int(config.get("floor_scale", 8192))) if tuned else NoPE()
    return scheme if layer.window is None else windowed(scheme, layer.window)
