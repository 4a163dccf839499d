"""The rope types of Hugging Face, each as a scheme of posenc."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from posenc.coordinates import COORDINATES
from posenc.core.compose import under
from posenc.huggingface.facts import LENGTH
from posenc.language.echo import echoed
from posenc.numerics import scaling
from posenc.schemes.by_parts import Llama3, YaRN
from posenc.schemes.interpolated import PI, DynamicNTK
from posenc.schemes.longrope import LongRoPE
from posenc.schemes.rope import RoPE

Config = Mapping[str, Any]
BETA = "llama_4_scaling_beta"
"""The strength of the temperature that some model types have beside YaRN."""


@dataclass(frozen=True)
class RopeSettings:
    """Rotary settings under Hugging Face's names, and under posenc's the ones that all rotary schemes have."""

    kind: str
    settings: Config
    config: Config
    common: dict[str, Any]
    short: bool = False
    """True if short factors serve any length."""

    def need(self, name: str) -> Any:
        """A setting that must be present."""
        if self.settings.get(name) is None:
            raise ValueError(f"The rotary settings {echoed(dict(self.settings))} lack {name}; give it among them.")
        return self.settings[name]

    def present_settings(self, **names: str) -> dict[str, Any]:
        """The settings that are present, from posenc's names to Hugging Face's."""
        return {ours: self.settings[n] for ours, n in names.items() if self.settings.get(n) is not None}

    def original(self) -> int:
        """The original length."""
        original = self.need(LENGTH)
        scaling.check_original(self.kind, original)
        return original

    def factor(self) -> float:
        """How many times longer the context is; left out, the model's length divided by the original one."""
        if self.settings.get("factor") is not None:
            return self.settings["factor"]
        if (longest := self.config.get("max_position_embeddings")) is None:
            raise ValueError(f"The rotary settings {echoed(dict(self.settings))} lack factor; give it.")
        return longest / self.original()


def _default(s: RopeSettings) -> Any:
    return RoPE(**s.common)


def _linear(s: RopeSettings) -> Any:
    return PI(s.need("factor"), **s.common)


def _dynamic(s: RopeSettings) -> Any:
    if (longest := s.config.get("max_position_embeddings")) is None:
        raise ValueError("The rope_type 'dynamic' needs max_position_embeddings, which this config lacks; give it.")
    return DynamicNTK(s.need("factor"), longest, **s.common)


def _yarn(s: RopeSettings) -> Any:
    names = {n: n for n in ("attention_factor", "beta_fast", "beta_slow")}
    settings = {n: value for n, value in s.present_settings(**names).items() if value or n == "attention_factor"}
    settings |= {"truncate": bool(s.settings["truncate"])} if "truncate" in s.settings else {}  # null is false here
    scales = s.present_settings(mscale="mscale", mscale_all_dim="mscale_all_dim")
    if "attention_factor" not in settings and len(scales) == 2 and all(scales.values()):  # else the authors use neither
        settings |= scales
    return YaRN(s.factor(), s.original(), **settings, **s.common)


def _longrope(s: RopeSettings) -> Any:
    long, short = (tuple(s.need(name)) for name in ("long_factor", "short_factor"))
    long = short if s.short else long
    factor = s.factor()
    factor = max(1.0, factor) if factor > 0 else factor  # at 1 and below their attention factor is 1
    magnitude = s.present_settings(magnitude="attention_factor") | s.present_settings(magnitude="long_mscale")
    if s.settings.get("short_mscale") != s.settings.get("long_mscale"):
        raise ValueError(
            f"short_mscale is {s.settings.get('short_mscale')} and long_mscale {s.settings.get('long_mscale')};"
            " longrope has one magnitude for short and long texts, so they must be equal."
        )
    return LongRoPE(long, short, factor, s.original(), **magnitude, **s.common)


def _llama3(s: RopeSettings) -> Any:
    low, high = s.need("low_freq_factor"), s.need("high_freq_factor")
    return Llama3(s.need("factor"), s.original(), low, high, **s.common)


def _proportional(s: RopeSettings) -> Any:
    settings: dict[str, Any] = s.common | {"fraction": 1.0}
    scheme = RoPE(**settings, p=s.common["fraction"])
    return (
        scheme if s.settings.get("factor", 1) == 1 else under(scheme, COORDINATES.find("scale")(s.settings["factor"]))
    )


TYPES: dict[str, tuple[set[str], Callable[[RopeSettings], Any]]] = {
    "default": (set(), _default),
    "linear": ({"factor"}, _linear),
    "dynamic": ({"factor"}, _dynamic),
    "yarn": (
        {"factor", LENGTH, "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"}
        | {BETA, "max_position_embeddings"},
        _yarn,
    ),
    "longrope": (
        {"short_factor", "long_factor", LENGTH, "attention_factor", "factor", "short_mscale", "long_mscale"},
        _longrope,
    ),
    "llama3": ({"factor", LENGTH, "low_freq_factor", "high_freq_factor"}, _llama3),
    "proportional": ({"factor"}, _proportional),
}
"""The rope types that are read, with the settings that each has."""
