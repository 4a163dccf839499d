"""One rotary scheme as Hugging Face's settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from posenc.coordinates import COORDINATES
from posenc.core.compose import normal_form
from posenc.huggingface.facts import LENGTH, Facts
from posenc.naming import spec
from posenc.numerics import scaling
from posenc.schemes.by_parts import Llama3, YaRN
from posenc.schemes.interpolated import PI, DynamicNTK
from posenc.schemes.longrope import LongRoPE
from posenc.schemes.mrope import MRoPE
from posenc.schemes.rope import RoPE

HINTS = {
    "hope": " Write the same as 'rope' with p, the share of pairs that it keeps.",
    "ntk": " Write the same as 'rope' with the base that it raises.",
}


def write_rotation(scheme: Any, facts: Facts, version: int) -> dict[str, Any]:
    """The settings of one scheme, as part of the config of a model of this type."""
    label = spec(scheme)
    form = normal_form(scheme)
    inner = cast(Any, form.scheme)
    coordinates = [c for c, _ in form.draws if c is not None]
    if isinstance(form.scheme, MRoPE) and not coordinates:
        return _write_axes(form.scheme)
    if type(inner) not in WRITERS:
        names, hint = ", ".join(cls.name for cls in WRITERS), HINTS.get(getattr(inner, "name", ""), "")
        raise ValueError(f"Hugging Face has no rope_type for {label}; it has one for {names}.{hint}")
    scale = COORDINATES.find("scale")
    if coordinates and not (type(form.scheme) is RoPE and isinstance(coordinates[0], scale)):
        raise ValueError(f"A config can express the coordinates 'scale' with 'rope' only, not {label}.")
    if getattr(inner, "original", 0) is None:
        raise ValueError(f"{label} leaves original open; call posenc.bind(scheme, dims) first.")
    if inner.layout != facts.layout:
        raise ValueError(
            f"{label} has the layout {inner.layout!r}, which the code of a model fixes and not its config; name a"
            " model_type that has it, such as 'glm' for 'interleaved' and 'llama' for 'half', or permute the weights."
        )
    settings, around = WRITERS[type(inner)](inner, scheme)
    if facts.original is not None and LENGTH in settings:
        around |= {LENGTH: settings.pop(LENGTH)}  # where its code looks first
    if facts.width is not None:
        return _write_width(inner, settings, facts)
    if "partial_rotary_factor" not in settings and (inner.fraction != 1 or facts.fraction is not None):
        settings["partial_rotary_factor"] = inner.fraction
    if version == 5:
        return {"rope_parameters": {**settings, "rope_theta": inner.base}} | around
    old = {new: name for name, new in facts.names.items()}
    out = {old.get("rope_theta", "rope_theta"): inner.base} | around
    if "partial_rotary_factor" in settings:
        out[old.get("partial_rotary_factor", "partial_rotary_factor")] = settings.pop("partial_rotary_factor")
    return out | {"rope_scaling": None if settings["rope_type"] == "default" else settings}


def _write_axes(scheme: MRoPE) -> dict[str, Any]:
    """The pairs of time, height and width; their order and layout are those of a model type."""
    if scheme.sections is None:
        raise ValueError(f"{spec(scheme)} leaves sections open; call posenc.bind(scheme, dims) first.")
    settings = {"rope_type": "default", "rope_theta": scheme.base, "mrope_section": list(scheme.sections)}
    return {"rope_parameters": settings}


def _write_width(scheme: RoPE, settings: dict[str, Any], facts: Facts) -> dict[str, Any]:
    """The number of rotated features, where a model has that instead of a share, and a head that makes it the share."""
    if settings["rope_type"] != "default" or scheme.base != facts.base:
        raise ValueError(
            f"Models with rotary_dim have plain rotations of the base {facts.base} only, not {spec(scheme)}."
        )
    if scheme.fraction == 1:
        return {"rotary_dim": None}
    head = cast(int, facts.width) / scheme.fraction
    if head != int(head):
        raise ValueError(f"{spec(scheme)} turns {facts.width} features of no whole head; give another fraction.")
    return {"rotary_dim": facts.width, "head_dim": int(head)}


Written = tuple[dict[str, Any], dict[str, Any]]


def _write_rope(scheme: RoPE, composed: Any) -> Written:
    factor = next((c.factor for c, _ in normal_form(composed).draws if c is not None), 1.0)
    if scheme.frequencies == "learned" or (scheme.p != 1 and scheme.fraction != 1):
        raise ValueError(
            f"Hugging Face has no rope_type for {spec(scheme)}; frequencies must be fixed, and p or fraction 1."
        )
    if scheme.p != 1:
        more = {} if factor == 1 else {"factor": factor}
        return {"rope_type": "proportional", "partial_rotary_factor": scheme.p, **more}, {}
    return ({"rope_type": "default"} if factor == 1 else {"rope_type": "linear", "factor": factor}), {}


def _write_dynamic(scheme: DynamicNTK, composed: Any) -> Written:
    if scheme.rule != "ntk":
        raise ValueError(f"Hugging Face's 'dynamic' has the rule 'ntk' only, not {scheme.rule!r}.")
    return {"rope_type": "dynamic", "factor": scheme.factor}, {"max_position_embeddings": scheme.original}


def _write_yarn(scheme: YaRN, composed: Any) -> Written:
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


def _write_longrope(scheme: LongRoPE, composed: Any) -> Written:
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


def _write_llama3(scheme: Llama3, composed: Any) -> Written:
    names = "factor", "low_freq_factor", "high_freq_factor"
    return {"rope_type": "llama3", LENGTH: scheme.original, **{n: getattr(scheme, n) for n in names}}, {}


WRITERS: dict[type, Callable[[Any, Any], Written]] = {
    RoPE: _write_rope,
    PI: lambda scheme, composed: ({"rope_type": "linear", "factor": scheme.factor}, {}),
    DynamicNTK: _write_dynamic,
    YaRN: _write_yarn,
    LongRoPE: _write_longrope,
    Llama3: _write_llama3,
}
