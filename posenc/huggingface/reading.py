"""Hugging Face's rotary settings as schemes: one scheme for each type of layer.

Version 5 keeps them in `rope_parameters`, flat or by the type of the layer; version 4 in `rope_theta`, `rope_scaling`
and names that differ from model to model. `precedence` says which of them count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from posenc.core.scheme import Dims
from posenc.huggingface.facts import LENGTH, Facts
from posenc.huggingface.precedence import BASE, SHARE, UNSCALED, rotary_sets, share_of
from posenc.huggingface.rope_types import BETA, TYPES, RopeSettings
from posenc.huggingface.settings import Settings, head_size, parts_of_head
from posenc.language.echo import echoed
from posenc.naming import bind, spec
from posenc.numerics.rotation import Layout
from posenc.numerics.scaling import magnitude
from posenc.schemes.mrope import MRoPE
from posenc.schemes.temperature import Llama4

COMMON = {"rope_type", "type", BASE, SHARE}


def read_rotations(config: Settings, labels: set[str], facts: Facts) -> dict[str, Any]:
    """The scheme of each type of layer."""
    return {label: _scheme(own, config, facts) for label, own in rotary_sets(config, labels, facts).items()}


def _scheme(settings: Settings, config: Settings, facts: Facts) -> Any:
    """The scheme of one set of rotary settings, which fits a head; `config` has the others."""
    kind = settings.get("rope_type", settings.get("type", "default"))
    kind = {"su": "longrope"}.get(kind, kind)
    if kind not in TYPES and not (kind == "mrope" and facts.sections):
        raise ValueError(f"The rope_type {echoed(kind)} is not known; posenc reads {', '.join(TYPES)}.")
    served = facts.rope_types or [name for name in TYPES if facts.joined is None or name != "proportional"]
    if kind not in (*served, "mrope"):
        raise ValueError(
            f"The rope_type {echoed(kind)} is not read for this model type; posenc reads {', '.join(served)}."
        )
    head = head_size(config, facts)
    if head is not None and head % 2:
        raise ValueError(f"A head of this config has {head} features, and a rotation turns pairs; give an even number.")
    common = {"base": _base(settings, config), "layout": _layout(config, facts)}
    common["fraction"] = _fraction(kind, settings, config, facts, head)
    common |= {} if facts.joined is None else {"at": "end"}
    rotary = RopeSettings(kind, settings, config, common, facts.short)
    scheme = _by_axes(rotary, facts, head) if facts.sections else read_rope_type(rotary, facts)
    if head is not None:
        try:
            bind(scheme, Dims(head, 1, head, trained=1))
        except ValueError as error:
            raise ValueError(f"The rotary settings do not fit a head of {head} features: {error}") from error
    if facts.joined is not None and head is not None and kind not in UNSCALED and settings.get("mscale_all_dim"):
        scale = magnitude(rotary.need("factor"), settings["mscale_all_dim"]) ** 2 / math.sqrt(head)
        config.left["mscale_all_dim"] = f"it enters the scale of scores, squared: pass {scale:.8g} as attend's scale"
    return scheme


def _layout(config: Settings, facts: Facts) -> Layout:
    """Return the features that make a pair; some types have a setting for it."""
    return facts.layout if not facts.pairs or config.get(facts.pairs, True) else "half"


def read_rope_type(rotary: RopeSettings, facts: Facts) -> Any:
    """The scheme of a rope type; queries are multiplied first where the type has a temperature beside it."""
    names, build = TYPES[rotary.kind]
    if odd := sorted(rotary.settings.keys() - COMMON - names - {"mrope_section", LENGTH}):
        raise ValueError(
            f"The rope_type {echoed(rotary.kind)} has no setting {echoed(odd[0])}; it has"
            f" {', '.join(sorted(names | COMMON))}."
        )
    if (beta := rotary.settings.get(BETA)) and facts.temperature != "all":
        raise ValueError(f"{BETA} is {beta}, and the code of this model type does not read it; leave it out.")
    try:
        scheme = build(rotary)
    except ValueError as error:
        raise ValueError(f"The settings of the rope_type {echoed(rotary.kind)} cannot be: {error}") from error
    if rotary.settings.get("mrope_section"):
        raise ValueError(
            "This config has an mrope_section, pairs for time, height and width, which posenc does not read for this"
            f" model type; of a text alone the scheme is {spec(scheme)!r}."
        )
    return Llama4(beta, rotary.original(), offset=0) + scheme if beta else scheme


def _by_axes(rotary: RopeSettings, facts: Facts, head: int | None) -> Any:
    """Pairs shared out among time, height and width; a text alone has the same position on all three."""
    sections = rotary.settings.get("mrope_section", facts.sections)
    if sections is None:
        raise ValueError("mrope_section is None; give the pairs for time, height and width, three numbers.")
    fraction = rotary.common["fraction"]
    if len(sections) != 3 or head is not None and 2 * sum(sections) != round(head * fraction):
        raise ValueError(
            f"mrope_section is {list(sections)}, the pairs for time, height and width; give three numbers that add up"
            f" to all pairs that turn{'' if head is None else f', of which a head has {round(head * fraction) // 2}'}."
        )
    if rotary.kind not in UNSCALED:
        raise ValueError(
            f"posenc has no {rotary.kind!r} with an mrope_section, which here is {tuple(sections)}; of a text alone the"
            f" scheme is {spec(TYPES[rotary.kind][1](rotary))!r}."
        )
    return MRoPE(tuple(sections), facts.order, rotary.common["base"], facts.layout, fraction)


def _base(settings: Settings, config: Settings) -> float:
    if settings[BASE] is None:
        raise ValueError(
            f"{config.called(BASE)} is None; give the base of the rotation, such as 10000.0, or leave it out."
        )
    base = float(settings[BASE])
    if base <= 0 or base == 1:
        raise ValueError(
            f"{config.called(BASE)} is {settings[BASE]}; give a base above 0 that is not 1, such as 10000.0."
        )
    return base


def _fraction(kind: str, settings: Settings, config: Settings, facts: Facts, head: int | None) -> float:
    """The share of a head that is rotated; it makes whole pairs where the head's width is known."""
    if (parts := parts_of_head(config, facts)) is not None:
        return _joined_share(kind, settings, facts, *parts)
    if facts.width is not None:
        return share_of("rotary_dim", config.get("rotary_dim", facts.width), head)
    if facts.fraction is None and kind in UNSCALED:
        return 1.0
    part, called = settings.get(SHARE, 1.0), config.called(SHARE)
    if facts.fraction is None and kind != "proportional" and part != 1:
        raise ValueError(
            f"{SHARE} is {part}, but the code of this model type turns whole heads, and cannot run with the rope_type"
            f" {echoed(kind)} beside it; leave it out."
        )
    if part is None or not 0 < part <= 1:
        raise ValueError(f"{called} is {part}; give the share of a head that turns, above 0 and at most 1.")
    if head is None:
        return part
    rotated = 2 * int(head * part // 2) if kind == "proportional" else int(head * part)
    if rotated % 2 or not rotated:
        raise ValueError(
            f"{called} is {part}, which turns {rotated} of the {head} features of a head; give a share that turns"
            f" pairs, such as {max(2, rotated // 2 * 2) / head:.6g}."
        )
    return part if kind == "proportional" else rotated / head


def _joined_share(kind: str, settings: Settings, facts: Facts, plain: int, rotated: int) -> float:
    """The share of a joined head that is rotated, its second part."""
    share = rotated / (plain + rotated)
    needed = 1.0 if facts.fraction in (None, 1) else share
    part = settings.get(SHARE) if facts.fraction is not None or kind not in UNSCALED else None
    if part is not None and not math.isclose(part, needed):
        raise ValueError(
            f"{SHARE} is {settings[SHARE]}, but the code of this model type turns the qk_rope_head_dim={rotated} last"
            f" of {plain + rotated} features; leave it out."
        )
    return share


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
