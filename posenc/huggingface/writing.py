"""Schemes as Hugging Face's rotary settings: those of one scheme, and of layers that differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from posenc.coordinates import COORDINATES
from posenc.core.compose import normal_form
from posenc.huggingface.model_types import FRACTIONS, INTERLEAVED, LENGTH, LLAMA4, LOCAL, OLD_NAMES, PARTLY_NOPE
from posenc.naming import spec
from posenc.numerics import scaling
from posenc.schemes.by_parts import Llama3, YaRN
from posenc.schemes.interpolated import PI, DynamicNTK
from posenc.schemes.longrope import LongRoPE
from posenc.schemes.nope import NoPE
from posenc.schemes.rope import RoPE
from posenc.schemes.temperature import Llama4

HINTS = {
    "hope": " Write the same as 'rope' with p, the share of pairs that it keeps.",
    "ntk": " Write the same as 'rope' with the base that it raises.",
}


def write_layers(types: list[str], schemes: list[Any], kind: str | None, version: int) -> dict[str, Any]:
    """The rotary settings of all layers: one set, or one for each type of layer, and the layers without rotation."""
    rotates = [not isinstance(s, NoPE | Llama4) for s in schemes]
    rotary = {s for s, here in zip(schemes, rotates, strict=True) if here}
    if not rotary:
        raise ValueError(
            "None of these layers rotates queries and keys, so a config has no rotary settings; there is none to write."
        )
    if len(rotary) == 1 and kind not in LOCAL:
        return write(rotary.pop(), kind, version) | _write_without(schemes, rotates, kind)
    if version == 4:
        raise ValueError("A config of version 4 has one set of rotary settings for all layers; write version 5.")
    sets: dict[str, set[Any]] = {}
    for label, s in zip(types, schemes, strict=True):
        sets.setdefault(label, set()).add(s)
    if any(len(found) > 1 for found in sets.values()):
        raise ValueError(
            "A config has one set of rotary settings for layers with a window and one for those without, and these"
            " layers differ in more; give all layers with a window one scheme, and all others one."
        )
    written = {label: write(s, kind, 5) if s in rotary else {} for label, (s,) in sets.items()}
    out = {"rope_parameters": {label: one.pop("rope_parameters", None) for label, one in written.items()}}
    around = {name: value for one in written.values() for name, value in one.items()}
    if any(one.items() - around.items() for one in written.values()):
        raise ValueError("A config has one max_position_embeddings, and these layers have several; give them one.")
    return out | around | (_write_without(schemes, rotates, kind) if kind in PARTLY_NOPE else {})


def write(scheme: Any, kind: str | None, version: int) -> dict[str, Any]:
    """The settings of one scheme, as part of the config of a model of this type."""
    label = spec(scheme)
    form = normal_form(scheme)
    inner, coordinates = form.scheme, [c for c, _ in form.draws if c is not None]
    if type(inner) not in WRITERS:
        known, hint = ", ".join(one.name for one in WRITERS), HINTS.get(getattr(inner, "name", ""), "")
        raise ValueError(f"Hugging Face has no rope_type for {label}; it has one for {known}.{hint}")
    scale = COORDINATES.find("scale")
    if coordinates and not (type(inner) is RoPE and isinstance(coordinates[0], scale)):
        raise ValueError(f"A config can express the coordinates 'scale' with 'rope' only, not {label}.")
    if getattr(inner, "original", 0) is None:
        raise ValueError(f"{label} leaves original open; call posenc.bind(scheme, dims) first.")
    if (inner.layout == "interleaved") != (kind in INTERLEAVED):
        raise ValueError(
            f"{label} has the layout {inner.layout!r}, which the code of a model fixes and not its config; name a"
            " model_type that has it, such as 'glm' for 'interleaved' and 'llama' for 'half', or permute the weights."
        )
    settings, around = WRITERS[type(inner)](inner, scheme)
    if "partial_rotary_factor" not in settings and (inner.fraction != 1 or kind in FRACTIONS):
        settings["partial_rotary_factor"] = inner.fraction
    if version == 5:
        return {"rope_parameters": {**settings, "rope_theta": inner.base}} | around
    names = OLD_NAMES if kind == "gpt_neox" else {name: name for name in OLD_NAMES}
    out = {names["rope_theta"]: inner.base} | around
    if "partial_rotary_factor" in settings:
        out[names["partial_rotary_factor"]] = settings.pop("partial_rotary_factor")
    return out | {"rope_scaling": None if settings["rope_type"] == "default" else settings}


def _write_without(schemes: list[Any], rotates: list[bool], kind: str | None) -> dict[str, Any]:
    """The layers without rotation and their temperature, also where they equal a model's defaults."""
    temperatures = [s for s in schemes if isinstance(s, Llama4)]
    out: dict[str, Any] = {"attn_temperature_tuning": bool(temperatures)} if kind in LLAMA4 else {}
    if temperatures:
        out |= {"attn_scale": temperatures[0].strength, "floor_scale": temperatures[0].floor}
    if kind in PARTLY_NOPE or (not all(rotates) and kind is None):
        out["no_rope_layers"] = [int(here) for here in rotates]
    return out


Written = tuple[dict[str, Any], dict[str, Any]]


def _write_rope(scheme: RoPE, whole: Any) -> Written:
    factor = next((c.factor for c, _ in normal_form(whole).draws if c is not None), 1.0)
    if scheme.frequencies == "learned" or (scheme.p != 1 and scheme.fraction != 1):
        raise ValueError(
            f"Hugging Face has no rope_type for {spec(scheme)}; frequencies must be fixed, and p or fraction 1."
        )
    if scheme.p != 1:
        more = {} if factor == 1 else {"factor": factor}
        return {"rope_type": "proportional", "partial_rotary_factor": scheme.p, **more}, {}
    return ({"rope_type": "default"} if factor == 1 else {"rope_type": "linear", "factor": factor}), {}


def _write_dynamic(scheme: DynamicNTK, whole: Any) -> Written:
    if scheme.rule != "ntk":
        raise ValueError(f"Hugging Face's 'dynamic' has the rule 'ntk' only, not {scheme.rule!r}.")
    return {"rope_type": "dynamic", "factor": scheme.factor}, {"max_position_embeddings": scheme.original}


def _write_yarn(scheme: YaRN, whole: Any) -> Written:
    if scheme.extrapolation_factor != 1:
        raise ValueError("Hugging Face's 'yarn' has no extrapolation_factor; leave it at 1.")
    if (scheme.mscale, scheme.mscale_all_dim) != (1, 0) and not (scheme.mscale and scheme.mscale_all_dim):
        raise ValueError(
            "Hugging Face's 'yarn' reads mscale and mscale_all_dim only where both are above 0; give both."
        )
    settings = {n: getattr(scheme, n) for n in ("factor", "beta_fast", "beta_slow", "truncate")}
    settings |= {"rope_type": "yarn", LENGTH: scheme.original}
    if scheme.attention_factor != "log":
        settings["attention_factor"] = scheme.attention_factor
    elif scheme.mscale_all_dim:
        settings |= {"mscale": scheme.mscale, "mscale_all_dim": scheme.mscale_all_dim}
    return settings, {}


def _write_longrope(scheme: LongRoPE, whole: Any) -> Written:
    if scheme.switch != "length" or scheme.start:
        raise ValueError(
            "Hugging Face's 'longrope' always switches by length; leave switch at 'length' and start at 0."
        )
    if scheme.long is None or scheme.short is None:
        raise ValueError(f"{spec(scheme)} leaves its factors open; call posenc.bind(scheme, dims) first.")
    lists = {"long_factor": list(scheme.long), "short_factor": list(scheme.short)}
    settings = {"rope_type": "longrope", "factor": scheme.factor, LENGTH: scheme.original, **lists}
    if (m := scheme.magnitude) != "su":
        settings["attention_factor"] = scaling.magnitude(scheme.factor) if m == "yarn" else m
    return settings, {}


def _write_llama3(scheme: Llama3, whole: Any) -> Written:
    names = "factor", "low_freq_factor", "high_freq_factor"
    return {"rope_type": "llama3", LENGTH: scheme.original, **{n: getattr(scheme, n) for n in names}}, {}


WRITERS: dict[type, Callable[[Any, Any], Written]] = {
    RoPE: _write_rope,
    PI: lambda scheme, whole: ({"rope_type": "linear", "factor": scheme.factor}, {}),
    DynamicNTK: _write_dynamic,
    YaRN: _write_yarn,
    LongRoPE: _write_longrope,
    Llama3: _write_llama3,
}
