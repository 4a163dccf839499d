"""Facts about the code of each model type of transformers that a config does not say: `facts.toml`, read once."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any, Literal

from posenc.numerics.rotation import Layout

LENGTH = "original_max_position_embeddings"
FULL, SLIDING, CHUNKED = "full_attention", "sliding_attention", "chunked_attention"


@dataclass(frozen=True)
class Facts:
    """One model type; facts.toml says what each field means."""

    scheme: str = "rope"
    layout: Layout = "half"
    base: float = 10000.0
    base_names: tuple[str, ...] = ()
    fraction: float | None = None
    features: str = ""
    width: int | None = None
    joined: tuple[int, int] | None = None
    pairs: str = ""
    head: int | None = None
    divided: bool = False
    rope: Mapping[str, Any] = field(default_factory=dict)
    bases: Mapping[str, Any] = field(default_factory=dict)
    sets: Literal["own", "common", "given"] = "own"
    scaled: tuple[str, ...] = ()
    rope_types: tuple[str, ...] = ()
    short: bool = False
    original: int | None = None
    windows: Literal["none", "all", "listed"] = "none"
    window: int | None = None
    switch: bool = False
    side: Literal["past", "both"] = "past"
    half_of: str = ""
    before: str = ""
    all_without_window: bool = False
    both_sides: str = ""
    layers: str = "F"
    start: int | None = None
    stop: int | None = None
    last: str = ""
    period: str = ""
    turns: Literal["all", "windowed", "listed", "bases"] = "all"
    ignores: tuple[str, ...] = ()
    instead: Mapping[str, str] = field(default_factory=dict)
    temperature: Literal["none", "unrotated", "all"] = "none"
    sections: tuple[int, ...] = ()
    order: Literal["chunked", "interleaved"] = "chunked"
    fixed: Mapping[str, Any] = field(default_factory=dict)
    backwards: bool = False
    notes: Mapping[str, str] = field(default_factory=dict)
    usual: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    row: int | Literal["padding"] = 0


@cache
def types() -> dict[str, Facts]:
    """The facts of every model type that is read."""
    out: dict[str, Facts] = {}
    tables = _toml()
    for family in tables["family"] + tables["layered"]:
        own = {name: value for name, value in family.items() if name != "types"}
        own |= {"rope": tables["ropes"][own["rope"]]} if "rope" in own else {}
        own |= {"notes": {name: tables["notes"][name] for name in own["notes"]}} if "notes" in own else {}
        out |= dict.fromkeys(family["types"].split(), Facts(**own))
    for head, kinds in tables["heads"].items():
        out |= {kind: replace(out[kind], head=int(head)) for kind in kinds.split()}
    for name, usual in tables["usual"].items():
        for value, kinds in usual.items():
            more = {name: json.loads(value)}
            out |= {kind: replace(out[kind], usual=dict(out[kind].usual) | more) for kind in kinds.split()}
    return out


def aside() -> dict[str, str]:
    """Settings of attention that do not concern position, and why each is left aside."""
    return _toml()["aside"]


def positional() -> list[str]:
    """Settings of positions, of which a config may have some that the code of its type does not read."""
    return _toml()["unread"]["names"].split()


def flat() -> list[str]:
    """Model types of several parts whose released configs have the settings of the text part beside the others."""
    return _toml()["outer"]["flat"].split()


def under(kind: str | None) -> dict[str, Any]:
    """Return the settings that the code of a model type of several parts lays under those of its text part."""
    return _toml()["outer"]["under"].get(kind or "", {})


def renamed(kind: str) -> dict[str, str]:
    """Return the types of text parts that released configs of a model type have under another name."""
    return _toml()["outer"]["renamed"].get(kind, {})


@cache
def compared() -> dict[str, Any]:
    """Return what `python -m tests.huggingface.record` found of every model type of transformers."""
    return json.loads(resources.files("posenc.huggingface").joinpath("compared.json").read_text(encoding="utf-8"))


@cache
def _toml() -> dict[str, Any]:
    return tomllib.loads(resources.files("posenc.huggingface").joinpath("facts.toml").read_text(encoding="utf-8"))
