"""Schemes as Hugging Face's rotary settings: those of one scheme, and of layers that differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from posenc.coordinates import COORDINATES
from posenc.core.compose import Placed
from posenc.huggingface.model_types import FRACTIONS, HALF_NOPE, INTERLEAVED, LENGTH, LLAMA4, LOCAL, OLD_NAMES
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
    """The rotary settings of all layers: one set, or one for each type of layer, and a list of layers without."""
    turns = [not isinstance(s, NoPE | Llama4) for s in schemes]
    turning = {s for s, here in zip(schemes, turns, strict=True) if here}
    if not turning:
        raise ValueError("A config that turns nothing in any layer says so by its model alone; there is none to write.")
    if len(turning) == 1 and kind not in LOCAL:
        return write(turning.pop(), kind, version) | _say_still(schemes, turns, kind)
    if version == 4:
        raise ValueError("A config of version 4 has one set of rotary settings for all layers; write version 5.")
    sets: dict[str, set[Any]] = {}
    for label, s in zip(types, schemes, strict=True):
        sets.setdefault(label, set()).add(s)
    if any(len(found) > 1 for found in sets.values()):
        raise ValueError(
            "A config has one set of rotary settings for layers with a window and one for those without, and these"
            " layers differ in more; give all layers of a kind the same scheme."
        )
    said = {label: write(s, kind, 5) if s in turning else {} for label, (s,) in sets.items()}
    out = {"rope_parameters": {label: one.pop("rope_parameters", None) for label, one in said.items()}}
    around = {name: value for one in said.values() for name, value in one.items()}
    if any(one.items() - around.items() for one in said.values()):
        raise ValueError("A config has one max_position_embeddings, and these layers have several; give them one.")
    return out | around | (_say_still(schemes, turns, kind) if kind in HALF_NOPE else {})


def write(scheme: Any, kind: str | None, version: int) -> dict[str, Any]:
    """The settings of one scheme as a part of the config of a model of this kind."""
    label = spec(scheme)
    inner = scheme.scheme if isinstance(scheme, Placed) else scheme
    if type(inner) not in WORDS:
        known, hint = ", ".join(one.name for one in WORDS), HINTS.get(getattr(inner, "name", ""), "")
        raise ValueError(f"Hugging Face has no word for {label}; it has words for {known}.{hint}")
    scale = COORDINATES.find("scale")
    if isinstance(scheme, Placed) and not (type(inner) is RoPE and isinstance(scheme.coordinates, scale)):
        raise ValueError(f"Of coordinates, a config can say 'scale' around 'rope' alone, not {label}.")
    if getattr(inner, "original", 0) is None:
        raise ValueError(f"{label} leaves original open; call posenc.bind(scheme, dims) first.")
    if (inner.layout == "interleaved") != (kind in INTERLEAVED):
        raise ValueError(
            f"{label} has the layout {inner.layout!r}, which a config does not say but the model's code; name a"
            " model_type that has it, such as 'glm' for 'interleaved' and 'llama' for 'half', or permute the weights."
        )
    said, around = WORDS[type(inner)](inner, scheme)
    if "partial_rotary_factor" not in said and (inner.fraction != 1 or kind in FRACTIONS):
        said["partial_rotary_factor"] = inner.fraction
    if version == 5:
        return {"rope_parameters": {**said, "rope_theta": inner.base}} | around
    names = OLD_NAMES if kind == "gpt_neox" else {name: name for name in OLD_NAMES}
    out = {names["rope_theta"]: inner.base} | around
    if "partial_rotary_factor" in said:
        out[names["partial_rotary_factor"]] = said.pop("partial_rotary_factor")
    return out | {"rope_scaling": None if said["rope_type"] == "default" else said}


def _say_still(schemes: list[Any], turns: list[bool], kind: str | None) -> dict[str, Any]:
    """Which layers turn nothing, and the temperature that they have instead; a model may do so unless told."""
    warm = [s for s in schemes if isinstance(s, Llama4)]
    out: dict[str, Any] = {"attn_temperature_tuning": bool(warm)} if kind in LLAMA4 else {}
    if warm:
        out |= {"attn_scale": warm[0].strength, "floor_scale": warm[0].floor}
    if kind in HALF_NOPE or (not all(turns) and kind is None):
        out["no_rope_layers"] = [int(here) for here in turns]
    return out


Said = tuple[dict[str, Any], dict[str, Any]]


def _say_rope(scheme: RoPE, given: Any) -> Said:
    factor = given.coordinates.factor if isinstance(given, Placed) else 1.0
    if scheme.frequencies == "learned" or (scheme.p != 1 and scheme.fraction != 1):
        raise ValueError(f"Hugging Face has no word for {spec(scheme)}: frequencies are fixed, and p or fraction is 1.")
    if scheme.p != 1:
        more = {} if factor == 1 else {"factor": factor}
        return {"rope_type": "proportional", "partial_rotary_factor": scheme.p, **more}, {}
    return ({"rope_type": "default"} if factor == 1 else {"rope_type": "linear", "factor": factor}), {}


def _say_dynamic(scheme: DynamicNTK, given: Any) -> Said:
    if scheme.rule != "ntk":
        raise ValueError(f"Hugging Face's 'dynamic' has the rule 'ntk' alone, not {scheme.rule!r}.")
    return {"rope_type": "dynamic", "factor": scheme.factor}, {"max_position_embeddings": scheme.original}


def _say_yarn(scheme: YaRN, given: Any) -> Said:
    if scheme.extrapolation_factor != 1:
        raise ValueError("Hugging Face's 'yarn' has no extrapolation_factor; leave it at 1.")
    if (scheme.mscale, scheme.mscale_all_dim) != (1, 0) and not (scheme.mscale and scheme.mscale_all_dim):
        raise ValueError("Hugging Face's 'yarn' takes mscale and mscale_all_dim where both are above 0; say the ratio.")
    said = {n: getattr(scheme, n) for n in ("factor", "beta_fast", "beta_slow", "truncate")}
    said |= {"rope_type": "yarn", LENGTH: scheme.original}
    if scheme.attention_factor != "log":
        said["attention_factor"] = scheme.attention_factor
    elif scheme.mscale_all_dim:
        said |= {"mscale": scheme.mscale, "mscale_all_dim": scheme.mscale_all_dim}
    return said, {}


def _say_longrope(scheme: LongRoPE, given: Any) -> Said:
    if scheme.switch != "length" or scheme.start:
        raise ValueError("Hugging Face's 'longrope' switches by length, for all positions; it cannot say otherwise.")
    if scheme.long is None or scheme.short is None:
        raise ValueError(f"{spec(scheme)} leaves its factors open; call posenc.bind(scheme, dims) first.")
    lists = {"long_factor": list(scheme.long), "short_factor": list(scheme.short)}
    said = {"rope_type": "longrope", "factor": scheme.factor, LENGTH: scheme.original, **lists}
    if (m := scheme.magnitude) != "su":
        said["attention_factor"] = scaling.magnitude(scheme.factor) if m == "yarn" else m
    return said, {}


def _say_llama3(scheme: Llama3, given: Any) -> Said:
    names = "factor", "low_freq_factor", "high_freq_factor"
    return {"rope_type": "llama3", LENGTH: scheme.original, **{n: getattr(scheme, n) for n in names}}, {}


WORDS: dict[type, Callable[[Any, Any], Said]] = {
    RoPE: _say_rope,
    PI: lambda scheme, given: ({"rope_type": "linear", "factor": scheme.factor}, {}),
    DynamicNTK: _say_dynamic,
    YaRN: _say_yarn,
    LongRoPE: _say_longrope,
    Llama3: _say_llama3,
}
