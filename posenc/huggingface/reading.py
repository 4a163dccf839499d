"""Hugging Face's rotary settings as schemes: one set of settings for each kind of layer.

Version 5 keeps them in `rope_parameters`, flat or by the type of the layer, where None is a layer without rotation;
version 4 in `rope_theta`, `rope_scaling` and names that differ from model to model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from posenc.coordinates import COORDINATES
from posenc.core.compose import under
from posenc.huggingface.model_types import BASES, FRACTIONS, LENGTH, LOCAL, SLIDING, WIDTHS, first, head_size
from posenc.numerics import scaling
from posenc.numerics.rotation import Layout
from posenc.schemes.by_parts import Llama3, YaRN
from posenc.schemes.interpolated import PI, DynamicNTK
from posenc.schemes.longrope import LongRoPE
from posenc.schemes.rope import RoPE

Set = Mapping[str, Any]
COMMON = {"rope_type", "type", "rope_theta", "partial_rotary_factor"}
ROTARY_KEYS = {"rope_theta", "rotary_emb_base", "rotary_dim", "rope_local_base_freq"}
"""Settings that only models with a rotation have."""


def read(config: Set, types: frozenset[str], layout: Layout) -> dict[str, Any]:
    """The scheme of each type of layer, None where it has no rotation."""
    kind, found = config.get("model_type"), first(config.get("rope_parameters"), config.get("rope_scaling"))
    local = first(config.get("rope_local_base_freq"), LOCAL.get(kind))
    if found is not None and not isinstance(found, Mapping):
        raise ValueError(f"The rotary settings of this config are {found!r}; they must be a dict, or left out.")
    if found and all(str(name).endswith("attention") for name in found):
        if odd := [one for one in found.values() if one is not None and not isinstance(one, Mapping)]:
            raise ValueError(f"The rotary settings of a type of layer are {odd[0]!r}; they must be a dict, or None.")
        if kind in LOCAL:
            usual = {SLIDING: {"rope_theta": local}}
            found = {t: usual.get(t, {}) | (found.get(t) or {}) for t in types}
        if missing := sorted(types - found.keys()):
            raise ValueError(f"rope_parameters has no settings for {missing[0]!r}, only for {', '.join(found)}.")
        return {t: None if found[t] is None else _scheme(found[t], config, layout) for t in types}
    if found is None and not config.keys() & ROTARY_KEYS and kind not in WIDTHS:
        raise ValueError(
            f"This config of model_type={kind!r} has no rotary settings; give rope_parameters, or rope_theta."
        )
    sets = dict.fromkeys(types, _scheme(found or {}, config, layout))
    if local is not None and SLIDING in types:
        sets[SLIDING] = RoPE(float(local), layout)
    return sets


def _scheme(settings: Set, config: Set, layout: Layout) -> Any:
    """The scheme of one set of rotary settings; `config` has the others."""
    kind = settings.get("rope_type", settings.get("type", "default"))
    kind = {"su": "longrope"}.get(kind, kind)
    if kind not in TYPES:
        raise ValueError(f"The rope_type {kind!r} is not known; posenc reads {', '.join(TYPES)}.")
    if settings.get("mrope_section"):
        raise ValueError("This config has an mrope_section, which is not read; write the scheme 'mrope' by hand.")
    names, build = TYPES[kind]
    if odd := sorted(settings.keys() - COMMON - names - {LENGTH, "mrope_section"}):
        raise ValueError(
            f"The rope_type {kind!r} has no setting {odd[0]!r}; it has {', '.join(sorted(names | COMMON))}."
        )
    usual = BASES.get(config.get("model_type"), 10000.0)
    base = first(settings.get("rope_theta"), config.get("rope_theta"), config.get("rotary_emb_base"), usual)
    common = {"base": float(base), "layout": layout, "fraction": _fraction(settings, config)}
    return build(_Set(kind, settings, config, common))


def _fraction(settings: Set, config: Set) -> float:
    """The share of a head that is rotated; it makes a whole number of features where the head's width is known."""
    kind, head = config.get("model_type"), head_size(config)
    shares = settings.get("partial_rotary_factor"), config.get("partial_rotary_factor"), config.get("rotary_pct")
    part, width = first(*shares), config.get("rotary_dim", WIDTHS.get(kind))
    if width is not None and (part is None or kind in WIDTHS):
        if head is None:
            raise ValueError(f"rotary_dim is {width}, but this config lacks the size of a head; give head_dim.")
        return width / head
    part = first(part, FRACTIONS.get(kind, 1.0))
    return int(head * part) / head if head and settings.get("rope_type") != "proportional" else part


class _Set:
    """Rotary settings under Hugging Face's names, and under posenc's the ones that all rotary schemes have."""

    def __init__(self, kind: str, settings: Set, config: Set, common: dict[str, Any]):
        self.kind, self.settings, self.config, self.common = kind, settings, config, common

    def need(self, name: str) -> Any:
        """A setting that must be present."""
        if self.settings.get(name) is None:
            raise ValueError(f"The rotary settings {dict(self.settings)!r} lack {name}; give it.")
        return self.settings[name]

    def some(self, **names: str) -> dict[str, Any]:
        """The settings that are present, from posenc's names to Hugging Face's."""
        return {ours: self.settings[n] for ours, n in names.items() if self.settings.get(n) is not None}

    def original(self) -> int:
        """The original length: beside the settings as in Phi-3's configs, among them, or the model's length."""
        original = first(self.config.get(LENGTH), self.settings.get(LENGTH), self.config.get("max_position_embeddings"))
        if original is None:
            raise ValueError(f"The rotary settings {dict(self.settings)!r} lack {LENGTH}; give it.")
        scaling.check_original(self.kind, original)
        return original

    def factor(self) -> float:
        """How many times longer the context is; left out, the model's length divided by the original one."""
        if self.settings.get("factor") is not None:
            return self.settings["factor"]
        if (longest := self.config.get("max_position_embeddings")) is None:
            raise ValueError(f"The rotary settings {dict(self.settings)!r} lack factor; give it.")
        return longest / self.original()


def _default(s: _Set) -> Any:
    return RoPE(**s.common)


def _linear(s: _Set) -> Any:
    return PI(s.need("factor"), **s.common)


def _dynamic(s: _Set) -> Any:
    if (longest := s.config.get("max_position_embeddings")) is None:
        raise ValueError("The rope_type 'dynamic' needs max_position_embeddings, which this config lacks; give it.")
    return DynamicNTK(s.need("factor"), longest, **s.common)


def _yarn(s: _Set) -> Any:
    names = {n: n for n in ("attention_factor", "beta_fast", "beta_slow", "truncate")}
    found = {n: value for n, value in s.some(**names).items() if value or n in ("truncate", "attention_factor")}
    scales = s.some(mscale="mscale", mscale_all_dim="mscale_all_dim")
    if "attention_factor" not in found and len(scales) == 2 and all(scales.values()):  # else the authors use neither
        found |= scales
    return YaRN(s.factor(), s.original(), **found, **s.common)


def _longrope(s: _Set) -> Any:
    long, short = (tuple(s.need(name)) for name in ("long_factor", "short_factor"))
    factor = s.factor()
    factor = max(1.0, factor) if factor > 0 else factor  # at 1 and below their attention factor is 1
    return LongRoPE(long, short, factor, s.original(), **s.some(magnitude="attention_factor"), **s.common)


def _llama3(s: _Set) -> Any:
    low, high = s.need("low_freq_factor"), s.need("high_freq_factor")
    return Llama3(s.need("factor"), s.original(), low, high, **s.common)


def _proportional(s: _Set) -> Any:
    scheme = RoPE(**(s.common | {"fraction": 1.0}), p=s.common["fraction"])
    return (
        scheme if s.settings.get("factor", 1) == 1 else under(scheme, COORDINATES.find("scale")(s.settings["factor"]))
    )


TYPES: dict[str, tuple[set[str], Callable[[_Set], Any]]] = {
    "default": (set(), _default),
    "linear": ({"factor"}, _linear),
    "dynamic": ({"factor"}, _dynamic),
    "yarn": (
        {"factor", LENGTH, "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"}, _yarn
    ),
    "longrope": ({"short_factor", "long_factor", LENGTH, "attention_factor", "factor"}, _longrope),
    "llama3": ({"factor", LENGTH, "low_freq_factor", "high_freq_factor"}, _llama3),
    "proportional": ({"factor"}, _proportional),
}  # fmt: skip
"""The rope types that are read, with the settings that each has."""
