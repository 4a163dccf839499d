"""The configs of a model type that are compared: as transformers writes it, as old models have it, and what differs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from posenc.huggingface.facts import FULL, LENGTH, SLIDING, Facts
from posenc.huggingface.rope_types import BETA

PAIRS = 8
THREE_AXES = "three axes"
"""The variant whose tokens have a position in time, height and width."""
ROPE_TYPES: dict[str, dict[str, Any]] = {
    "linear": {"factor": 4.0},
    "dynamic": {"factor": 2.0},
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 16},
    "yarn_all": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 2.0, "beta_slow": 0.5,
        "mscale": 0.7, "mscale_all_dim": 0.4, "truncate": False,
    },
    "llama3": {
        "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32,
    },
    "longrope": {
        "factor": 4.0, "original_max_position_embeddings": 16,
        "short_factor": [1.0 + n / 10 for n in range(PAIRS)], "long_factor": [2.0 + n / 5 for n in range(PAIRS)],
    },
    "longrope_short": {
        "rope_type": "longrope", "factor": 2.0, "original_max_position_embeddings": 48,
        "short_factor": [1.0 + n / 10 for n in range(PAIRS)], "long_factor": [2.0 + n / 5 for n in range(PAIRS)],
    },
    "proportional": {"partial_rotary_factor": 0.5},
}  # fmt: skip

Variant = tuple[str, dict[str, Any]]


def variants(sizes: dict[str, Any], written: dict[str, Any], facts: Facts) -> Iterator[Variant]:
    """Names and configs. `sizes` makes a tiny model; `written` is the config.json that transformers makes of it."""
    yield "written", written
    yield "sizes", sizes
    plain = {name: value for name, value in sizes.items() if name != "sliding_window"}
    if facts.scheme == "rope":
        yield from _rotations(sizes, plain, facts)
    if facts.windows != "none":
        yield from _windows(sizes, plain, facts)
    elif facts.scheme == "rope":
        yield "layers that are ignored", sizes | {"layer_types": [FULL, SLIDING] * 4}
    if facts.sections:
        yield THREE_AXES, sizes
        old = {"type": "mrope", "mrope_section": sizes["rope_parameters"]["mrope_section"]}
        yield "old mrope", plain | {"rope_scaling": old, "rope_theta": 300.0}
    if facts.pairs:
        yield "halves", sizes | {facts.pairs: False}
    if facts.before:
        yield "keys before", plain | {facts.before: 11}
        yield "keys before, and a window", sizes | {facts.before: 11}
    if facts.half_of:
        yield "half", plain | {facts.half_of: 24}
    if facts.both_sides:
        yield "both sides", sizes | {facts.both_sides: True}
        yield "wide, both sides", sizes | {facts.both_sides: True, "sliding_window": 12}
    if facts.turns == "bases":
        yield "listed bases", sizes | {"layer_rope_theta": [0, 300.0] * 4, "rope_parameters": {"rope_theta": 300.0}}
        yield "other bases", sizes | {"layer_rope_theta": [0, 300.0] * 4}
    if facts.scheme == "esm":
        yield "rotary", sizes | {"position_embedding_type": "rotary"}
    if facts.scheme == "granitemoehybrid":
        yield "rope", sizes | {"position_embedding_type": "rope"}
    if facts.scheme == "zamba2":
        yield "rope", sizes | {"use_mem_rope": True}
    if facts.scheme == "vo_rope":
        yield from _turned_values(sizes)
    if facts.turns == "listed":
        yield "no_rope_layers", sizes | {"no_rope_layers": [1, 0] * 4}
        yield "no_rope_interval", sizes | {"no_rope_layer_interval": 3}
    if facts.temperature == "unrotated":
        yield "temperature", sizes | {"floor_scale": 8, "attn_scale": 0.3}
        yield "no temperature", sizes | {"floor_scale": 8, "attn_temperature_tuning": False}
    if facts.scheme == "t5":
        yield "buckets", sizes | {"relative_attention_num_buckets": 16, "relative_attention_max_distance": 20}
    if facts.scheme == "falcon":
        yield "alibi", sizes | {"alibi": True}
        yield "rope", sizes | {"alibi": False, "rope_theta": 500.0}
        yield "grouped", sizes | {"new_decoder_architecture": True, "num_kv_heads": 2}


def _turned_values(sizes: dict[str, Any]) -> Iterator[Variant]:
    yield "bases", sizes | {"rope_theta": 50.0, "compress_rope_theta": 300.0}
    one = {"rope_type": "default", "rope_theta": 70.0, "partial_rotary_factor": 0.25}
    yield "sets", sizes | {"rope_parameters": {"main": one, "compress": one | {"rope_theta": 900.0}}}
    bare = {"main": {"rope_type": "default"}, "compress": {"rope_type": "default", "rope_theta": 900.0}}
    yield "sets, base and share beside", sizes | {"rope_theta": 70.0, "rope_parameters": bare}
    yield "flat", sizes | {"rope_theta": 50.0, "rope_parameters": {"rope_type": "default", "rope_theta": 700.0}}
    yarn = {"type": "yarn", "factor": 4.0, LENGTH: 64}
    yield "scaled", sizes | {"rope_scaling": yarn, "compress_rope_theta": 300.0}
    yield "scaled, length beside", sizes | {"rope_scaling": yarn, "compress_rope_theta": 300.0, LENGTH: 128}
    yield "scaled, no length", sizes | {"rope_scaling": {"type": "yarn", "factor": 4.0}, "compress_rope_theta": 300.0}
    scaled = one | {"rope_type": "yarn", "factor": 4.0, LENGTH: 128, "attention_factor": 1.0}
    yield "scaled sets", sizes | {"rope_parameters": {"main": one, "compress": scaled}}
    larger = scaled | {"attention_factor": 1.2}
    yield "scaled sets, larger", sizes | {"rope_parameters": {"main": one, "compress": larger}}
    plain = {name: value for name, value in sizes.items() if name not in ("partial_rotary_factor", "layer_types")}
    yield "rotated features", plain | {"qk_rope_head_dim": 4}
    yield "ratios", plain | {"compress_ratios": [0, 0, 4, 128, 4, 128, 4, 0], "partial_rotary_factor": 0.25}


def _rotations(sizes: dict[str, Any], plain: dict[str, Any], facts: Facts) -> Iterator[Variant]:
    yield "left out", plain
    yield "version 4", sizes | {"rope_theta": 500.0, "rope_scaling": None}
    yield "version 4 linear", sizes | {"rope_theta": 500.0, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}
    yield "old linear", sizes | {"rope_theta": 500.0, "rope_scaling": {"type": "linear", "factor": 4.0}}
    yield "base", sizes | {"rope_parameters": {"rope_type": "default", "rope_theta": 300.0}}
    yield "share", sizes | {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.75}}
    yield "version 4 share", sizes | {"rope_theta": 500.0, "partial_rotary_factor": 0.75}
    for name, settings in ROPE_TYPES.items():
        settings = {"rope_type": name, "rope_theta": 300.0} | settings
        pairs = round(PAIRS * (facts.fraction or 1))
        settings |= {n: settings[n][:pairs] for n in ("short_factor", "long_factor") if n in settings}
        settings |= {BETA: 0.3} if facts.temperature == "all" and name.startswith("yarn") else {}
        longest = {"max_position_embeddings": 16} if name == "dynamic" else {}
        yield name, sizes | longest | {"rope_parameters": settings}
    for old, new in facts.names.items():
        if new in ("rope_theta", "partial_rotary_factor"):
            yield old, sizes | {old: 300.0 if new == "rope_theta" else 0.75}
    if facts.bases:
        both = {FULL: {"rope_type": "default", "rope_theta": 300.0}, SLIDING: {"rope_type": "default"}}
        yield (
            "by layer type",
            sizes | {"rope_parameters": both | {SLIDING: {"rope_type": "default", "rope_theta": 50.0}}},
        )
        yield "by layer type, one base", sizes | {"rope_parameters": both}
        yield "one layer type", sizes | {"rope_parameters": {FULL: {"rope_type": "linear", "factor": 2.0}}}
        yield "old bases", sizes | {name: 300.0 + n for n, (name, _) in enumerate(facts.bases.values()) if name}


def _windows(sizes: dict[str, Any], plain: dict[str, Any], facts: Facts) -> Iterator[Variant]:
    name = next((old for old, new in facts.names.items() if new == "sliding_window"), "sliding_window")
    yield "no window", plain | {name: None}
    yield "window", plain | {name: 12}
    if facts.switch:
        used = plain | {"use_sliding_window": True, "sliding_window": 12}
        yield "used", used
        yield "used from the third", used | {"max_window_layers": 2}
        yield "unused", plain | {"use_sliding_window": False, "sliding_window": 12}
        yield "used and listed", used | {"layer_types": [FULL, SLIDING] * 4}
    if facts.windows == "listed" and "S" in facts.layers:
        yield "listed", sizes | {"layer_types": [FULL, SLIDING, SLIDING, FULL] * 2}
        yield "all full", sizes | {"layer_types": [FULL] * 8}
        yield "all full, no window", plain | {"sliding_window": None, "layer_types": [FULL] * 8}
    if facts.period:
        yield "period", sizes | {facts.period: 2}
        yield "letters", sizes | {facts.period: "LLG"}
