"""Hugging Face's rotary settings as schemes: one set of settings for each type of layer.

Version 5 keeps them in `rope_parameters`, flat or by the type of the layer, where None is a layer without rotation;
version 4 in `rope_theta`, `rope_scaling` and names that differ from model to model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from posenc.huggingface.facts import Facts
from posenc.huggingface.rope_types import TYPES, RopeSettings
from posenc.huggingface.settings import Settings, first, head_size
from posenc.language.echo import echoed
from posenc.naming import spec
from posenc.schemes.mrope import MRoPE

Config = Mapping[str, Any]
COMMON = {"rope_type", "type", "rope_theta", "partial_rotary_factor"}


def read_rotations(config: Config, labels: set[str], facts: Facts) -> dict[str, Any]:
    """The scheme of each type of layer, None where it has no rotation."""
    rotary = config.get("rope_scaling") or config.get("rope_parameters")
    if rotary is None and "rope_type" in facts.rope and config.get("rope_theta") is not None:
        raise ValueError(
            f"This model type has rotary settings of its own, of the rope_type {facts.rope['rope_type']!r}, and"
            " rope_theta alone does not say whether they hold; give rope_parameters."
        )
    rotary = first(rotary, facts.rope, {})
    if rotary and all(str(name).endswith("attention") for name in rotary):
        return _by_layer_type(rotary, config, labels, facts)
    if facts.bases and not config.get("rope_scaling") and rotary:
        raise ValueError(
            f"rope_parameters of this model type are by the type of layer, {' and '.join(facts.bases)}; its code"
            " ignores one set for all."
        )
    return {label: _scheme(rotary, config, facts, label) for label in labels}


def _by_layer_type(by_label: Config, config: Config, labels: set[str], facts: Facts) -> dict[str, Any]:
    if odd := [
        settings for settings in by_label.values() if settings is not None and not isinstance(settings, Mapping)
    ]:
        raise ValueError(f"The rotary settings of a type of layer are {echoed(odd[0])}; they must be a dict, or None.")
    if not facts.bases:
        raise ValueError(
            "rope_parameters are by the type of layer, but the code of this model type has one set for all; give"
            " rope_type and what it needs."
        )
    # sets that are missing have the defaults of the type
    return {label: _scheme(by_label.get(label) or {}, config, facts, label) for label in labels}


def _scheme(settings: Config, config: Config, facts: Facts, label: str) -> Any:
    """The scheme of one set of rotary settings; `config` has the others."""
    if facts.bases and config.get("rope_scaling"):
        if "rope_type" not in settings:
            raise ValueError(
                "rope_scaling has no rope_type, without which the code of this model type ignores it; add it."
            )
        if label != next(iter(facts.bases)):
            settings = {}  # in old configs only the layers of the first type are scaled
    settings = Settings(settings, {})
    kind = settings.get("rope_type", settings.get("type", "default"))
    kind = {"su": "longrope"}.get(kind, kind)
    if kind not in TYPES and not (kind == "mrope" and facts.sections):
        raise ValueError(f"The rope_type {echoed(kind)} is not known; posenc reads {', '.join(TYPES)}.")
    if facts.rope_types and kind not in facts.rope_types:
        raise ValueError(
            f"The rope_type {echoed(kind)} is not read for this model type; posenc reads {', '.join(facts.rope_types)}."
        )
    if facts.sections:
        return _by_axes(kind, settings, config, facts, label)
    names, build = TYPES[kind]
    if odd := sorted(settings.keys() - COMMON - names - {"mrope_section", "original_max_position_embeddings"}):
        raise ValueError(
            f"The rope_type {echoed(kind)} has no setting {echoed(odd[0])}; it has {', '.join(sorted(names | COMMON))}."
        )
    common = {"base": _base(settings, config, facts, label), "layout": facts.layout}
    common["fraction"] = _fraction(kind, settings, config, facts)
    scheme = build(RopeSettings(kind, settings, config, common, facts.short, facts.original))
    if settings.get("mrope_section"):
        raise ValueError(
            "This config has an mrope_section, pairs for time, height and width, which posenc does not read for this"
            f" model type; of a text alone the scheme is {spec(scheme)!r}."
        )
    return scheme


def _by_axes(kind: str, settings: Config, config: Config, facts: Facts, label: str) -> Any:
    """Pairs shared out among time, height and width; a text alone has the same position on all three."""
    sections = settings.get("mrope_section", facts.sections)
    scheme = MRoPE(tuple(sections), facts.order, _base(settings, config, facts, label), facts.layout)
    if (head := head_size(config)) is not None and 2 * sum(sections) != head:
        raise ValueError(
            f"mrope_section is {list(sections)}, {sum(sections)} pairs, and a head of this config has {head} features;"
            " give an mrope_section that adds up to half of them."
        )
    if kind not in ("default", "mrope"):
        raise ValueError(f"posenc has no {kind!r} with an mrope_section; without the scaling it is {spec(scheme)!r}.")
    if _fraction("default", settings, config, facts) != 1:
        raise ValueError(f"posenc has no mrope of a part of each head; of whole heads it is {spec(scheme)!r}.")
    return scheme


def _base(settings: Config, config: Config, facts: Facts, label: str) -> float:
    name, usual = facts.bases.get(label, ("rope_theta", facts.base))
    bases = [settings["rope_theta"]] if "rope_theta" in settings else [config[name]] if name in config else []
    if bases == [None]:
        raise ValueError(
            f"{name or 'rope_theta'} is None; give the base of the rotation, such as 10000.0, or leave it out."
        )
    return float(first(*bases, usual))


def _fraction(kind: str, settings: Config, config: Config, facts: Facts) -> float:
    """The share of a head that is rotated; it makes a whole number of features where the head's width is known."""
    head = head_size(config)
    if facts.fraction is None and facts.width is None and kind == "default":
        return 1.0
    part = first(settings.get("partial_rotary_factor"), config.get("partial_rotary_factor"))
    if facts.width is not None:
        if (width := config.get("rotary_dim", facts.width)) is None:
            return 1.0
        if head is None:
            raise ValueError(f"rotary_dim is {width}, but this config lacks the size of a head; give head_dim.")
        if width > head:
            raise ValueError(
                f"rotary_dim is {width}, but a head of this config has {head:g} features; give one of 2 to {head:g}, or"
                " head_dim."
            )
        return width / head
    if kind == "proportional":
        return first(part, facts.fraction, 1.0)
    if facts.fraction is None:
        if part not in (None, 1):
            raise ValueError(
                f"partial_rotary_factor is {part}, but the code of this model type turns whole heads, and cannot run"
                f" with the rope_type {echoed(kind)} beside it; leave it out."
            )
        return 1.0
    part = first(part, facts.fraction)
    if part > 1:
        raise ValueError(
            f"This config turns {part} of each head, by partial_rotary_factor or its older name; give at most 1."
        )
    return int(head * part) / head if head else part


@dataclass(frozen=True)
class ConfigReport:
    """How `from_hf` read a config.

    `read_as` is the model type whose code was taken, another one than `model_type` where `like=` named it. `used` are
    the settings that decided the scheme. `aside` are settings that concern attention and not the scheme, each with what
    to do about it.
    """

    scheme: Any
    model_type: str | None
    read_as: str
    used: tuple[str, ...]
    aside: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        from posenc.naming import spec

        read = self.read_as if self.read_as == self.model_type else f"{self.model_type} read as {self.read_as}"
        lines = [f"{read}: {spec(self.scheme)}", f"used: {', '.join(self.used) or 'the defaults of the type'}"]
        return "\n".join(lines + [f"left aside: {name}, {why}" for name, why in self.aside])
