"""Configs that say one thing in two places, or leave something out, for every model type that is read.

Each is the tiny config of its type with one change. `walked.json` has what transformers builds of each: types in rows,
and for each config in its order the number of a scheme, or one of the two codes below.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from posenc.huggingface import facts as facts_of
from posenc.huggingface.facts import FULL, LENGTH, SLIDING, Facts
from tests.huggingface import store

FILE = Path(__file__).with_name("walked.json")
UNBUILT, REFUSED = -1, -2
"""A config that transformers does not build or run, and one that it does and posenc refuses."""
Variant = tuple[str, dict[str, Any]]
ROTARY = ("rope", "esm", "falcon", "granitemoehybrid", "zamba2")
"""The schemes of facts.toml that rotate in some configs."""
LISTS = {"short_factor": [1.0 + n / 10 for n in range(8)], "long_factor": [2.0 + n / 5 for n in range(8)]}
SCALED: dict[str, dict[str, Any]] = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "yarn": {"rope_type": "yarn", "factor": 4.0, LENGTH: 32},
    "llama3": {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, LENGTH: 32},
    "longrope": {"rope_type": "longrope", "factor": 4.0, LENGTH: 32} | LISTS,
    "proportional": {"rope_type": "proportional", "partial_rotary_factor": 0.5},
}
DEFAULT = {"rope_type": "default", "rope_theta": 300.0}
SETS = {FULL: DEFAULT, SLIDING: DEFAULT | {"rope_theta": 50.0}}
NULLS = f"""rope_theta rope_scaling rope_parameters partial_rotary_factor sliding_window layer_types num_hidden_layers
head_dim max_position_embeddings {LENGTH} use_sliding_window max_window_layers rotary_dim no_rope_layers
no_rope_layer_interval layer_rope_theta rotary_pct rotary_emb_base rope_local_base_freq sliding_window_pattern
global_rope_theta local_rope_theta default_theta local_attention is_causal""".split()
MISSING = "num_hidden_layers sliding_window head_dim layer_types max_position_embeddings n_layer".split()


def walk(sizes: dict[str, Any], facts: Facts) -> Iterator[Variant]:
    """Names and configs. `sizes` is the tiny config of a type."""
    sections = sizes.get("rope_parameters", {}).get("mrope_section") if facts.sections else None
    for name, config in _walk(sizes, facts):
        for key in ("rope_parameters", "rope_scaling"):
            if sections and config.get(key) and "mrope_section" not in config[key] and FULL not in config[key]:
                config = config | {key: config[key] | {"mrope_section": sections}}
        yield name, config


def _walk(sizes: dict[str, Any], facts: Facts) -> Iterator[Variant]:
    if facts.scheme == "rope" and facts.windows == "none" and "attn_layer_indices" not in sizes:
        sizes = sizes | {"num_hidden_layers": 2}  # all layers are alike
    for name in NULLS:
        yield f"{name}: null", sizes | {name: None}
    for name in MISSING:
        if name in sizes:
            yield f"no {name}", {other: value for other, value in sizes.items() if other != name}
    yield "position_embedding_type: null", sizes | {"position_embedding_type": None}
    yield from _windows(sizes, facts)
    if facts.scheme in ROTARY:
        on = {"esm": {"position_embedding_type": "rotary"}, "granitemoehybrid": {"position_embedding_type": "rope"}}
        sizes = sizes | on.get(facts.scheme, {}) | ({"use_mem_rope": True} if facts.scheme == "zamba2" else {})
        yield from _flat(sizes)
        yield from _sets(sizes, facts)
        yield from _names(sizes)
        yield from _widths(sizes, facts)


def _windows(sizes: dict[str, Any], facts: Facts) -> Iterator[Variant]:
    yield "is_causal: false", sizes | {"is_causal": False}
    yield "is_causal: true", sizes | {"is_causal": True}
    if facts.scheme == "falcon":
        yield "alibi", sizes | {"alibi": True}
        yield "alibi, not causal", sizes | {"alibi": True, "is_causal": False}
        yield "alibi: null", sizes | {"alibi": None}
    if facts.windows == "none":
        return
    for name in ("sliding_window", *facts.names, facts.half_of):
        if name in ("sliding_window", "local_attention", "attention_window_size"):
            for width in (1, 4, 5):
                yield f"{name}: {width}", sizes | {name: width}
                yield f"{name}: {width}, not causal", sizes | {name: width, "is_causal": False}
    depth = sizes.get("num_hidden_layers", 8)
    alone = {name: value for name, value in sizes.items() if name != "num_hidden_layers"}
    for name, listed in (
        ("all sliding", [SLIDING] * depth),
        ("all full", [FULL] * depth),
        ("last sliding", [FULL] * (depth - 1) + [SLIDING]),
        ("first sliding", [SLIDING] + [FULL] * (depth - 1)),
        ("one short", [FULL, SLIDING] * (depth // 2 - 1) + [FULL]),
    ):
        yield f"layer_types: {name}", sizes | {"layer_types": listed}
        yield f"layer_types: {name}, used", sizes | {"layer_types": listed, "use_sliding_window": True}
        yield f"layer_types: {name}, no depth", alone | {"layer_types": listed}
    yield "use_sliding_window: false", sizes | {"use_sliding_window": False}
    yield "use_sliding_window: true", sizes | {"use_sliding_window": True}
    used = sizes | {"use_sliding_window": True}
    yield "max_window_layers: 3, used", used | {"max_window_layers": 3}
    yield "max_window_layers: null, used", used | {"max_window_layers": None}
    yield "max_window_layers: 99, used", used | {"max_window_layers": 99}
    yield "no depth, used", {name: value for name, value in used.items() if name != "num_hidden_layers"}
    yield "bidirectional", sizes | {"use_bidirectional_attention": True}
    yield "bidirectional: null", sizes | {"use_bidirectional_attention": None}
    yield "bidirectional, not causal", sizes | {"use_bidirectional_attention": True, "is_causal": False}
    yield "depth: 7", sizes | {"num_hidden_layers": 7}


def _flat(sizes: dict[str, Any]) -> Iterator[Variant]:
    yield "rope_parameters: {}", sizes | {"rope_parameters": {}}
    yield "rope_scaling: {}", sizes | {"rope_scaling": {}}
    yield "flat and base", sizes | {"rope_parameters": DEFAULT, "rope_theta": 700.0}
    yield "base beside", sizes | {"rope_parameters": {"rope_type": "default"}, "rope_theta": 700.0}
    yield "base alone inside", sizes | {"rope_parameters": {"rope_theta": 300.0}}
    yield "base null inside", sizes | {"rope_parameters": DEFAULT | {"rope_theta": None}, "rope_theta": 700.0}
    yield "type null inside", sizes | {"rope_parameters": DEFAULT | {"rope_type": None}}
    yield "factor null inside", sizes | {"rope_parameters": DEFAULT | {"rope_type": "linear", "factor": None}}
    yield "share null inside", sizes | {"rope_parameters": DEFAULT | {"partial_rotary_factor": None}}
    yield "share inside", sizes | {"rope_parameters": DEFAULT | {"partial_rotary_factor": 0.5}}
    yield "share beside", sizes | {"rope_parameters": DEFAULT, "partial_rotary_factor": 0.5}
    yield (
        "share in both",
        sizes | {"rope_parameters": DEFAULT | {"partial_rotary_factor": 0.75}, "partial_rotary_factor": 0.5},
    )
    yield "share flat, base flat", sizes | {"partial_rotary_factor": 0.5, "rope_theta": 300.0}
    yield "scaling beside parameters", sizes | {"rope_parameters": DEFAULT, "rope_scaling": SCALED["linear"]}
    yield "scaling {} beside parameters", sizes | {"rope_parameters": DEFAULT, "rope_scaling": {}}
    yield "scaling with a base", sizes | {"rope_scaling": SCALED["linear"] | {"rope_theta": 300.0}, "rope_theta": 700.0}
    yield "scaling, share flat", sizes | {"rope_scaling": SCALED["linear"], "partial_rotary_factor": 0.5}
    yield "scaling without a type", sizes | {"rope_scaling": {"factor": 4.0}, "rope_theta": 300.0}
    yield "default under the old name", sizes | {"rope_scaling": {"type": "default"}, "rope_theta": 300.0}
    yield "both names of the type", sizes | {"rope_scaling": SCALED["linear"] | {"type": "yarn"}, "rope_theta": 300.0}
    yield "old type in parameters", sizes | {"rope_parameters": {"type": "linear", "factor": 4.0, "rope_theta": 300.0}}
    for name in ("yarn", "llama3", "longrope"):
        one = SCALED[name] | {"rope_theta": 300.0}
        without = {key: value for key, value in one.items() if key != LENGTH}
        yield f"{name}", sizes | {"rope_parameters": one}
        yield f"{name}, two lengths", sizes | {"rope_parameters": one, LENGTH: 16}
        yield f"{name}, length beside", sizes | {"rope_parameters": without, LENGTH: 16}
        yield f"{name}, no length", sizes | {"rope_parameters": without}
        yield f"{name}, length null", sizes | {"rope_parameters": one | {LENGTH: None}}
        yield f"{name}, length null beside", sizes | {"rope_parameters": one, LENGTH: None}
        yield f"{name}, no factor", sizes | {"rope_parameters": {k: v for k, v in one.items() if k != "factor"}}
        yield f"{name}, factor null", sizes | {"rope_parameters": one | {"factor": None}}
        yield f"{name}, old", sizes | {"rope_scaling": SCALED[name], "rope_theta": 300.0}
    yarn = SCALED["yarn"] | {"rope_theta": 300.0}
    yield "truncate: false", sizes | {"rope_parameters": yarn | {"truncate": False}}
    yield "truncate: false, old", sizes | {"rope_scaling": SCALED["yarn"] | {"truncate": False}, "rope_theta": 300.0}
    yield "truncate: null", sizes | {"rope_parameters": yarn | {"truncate": None}}
    yield (
        "proportional, factor",
        sizes | {"rope_parameters": SCALED["proportional"] | {"rope_theta": 300.0, "factor": 4.0}},
    )


def _sets(sizes: dict[str, Any], facts: Facts) -> Iterator[Variant]:
    depth = sizes.get("num_hidden_layers", 8)
    listed = sizes if "layer_types" in sizes else sizes | {"layer_types": [FULL, SLIDING] * (depth // 2)}
    yield "sets", listed | {"rope_parameters": SETS}
    yield "sets under the old name", listed | {"rope_scaling": SETS}
    yield "sets, one null", listed | {"rope_parameters": SETS | {SLIDING: None}}
    if not facts.bases:
        return
    yield "sets, no layer_types", sizes | {"rope_parameters": SETS}
    yield "sets and base", listed | {"rope_parameters": SETS, "rope_theta": 700.0}
    bare = {FULL: {"rope_type": "default"}, SLIDING: {"rope_type": "default"}}
    yield "sets without base", listed | {"rope_parameters": bare}
    yield "sets without base, base beside", listed | {"rope_parameters": bare, "rope_theta": 700.0}
    yield "sets without base, local beside", listed | {"rope_parameters": bare, "rope_local_base_freq": 700.0}
    yield "sets with base null", listed | {"rope_parameters": {FULL: DEFAULT | {"rope_theta": None}, SLIDING: DEFAULT}}
    yield "sets, share beside", listed | {"rope_parameters": SETS, "partial_rotary_factor": 0.5}
    half = DEFAULT | {"partial_rotary_factor": 0.5}
    yield "sets, share inside", listed | {"rope_parameters": SETS | {FULL: half}}
    yield "sets, share in both", listed | {"rope_parameters": SETS | {FULL: half}, "partial_rotary_factor": 0.75}
    yield "sets, one left out", listed | {"rope_parameters": {FULL: DEFAULT}}
    yield "sets, the other left out", listed | {"rope_parameters": {SLIDING: DEFAULT}}
    yield "sets, the other null", listed | {"rope_parameters": SETS | {FULL: None}}
    yield "sets, one empty", listed | {"rope_parameters": SETS | {SLIDING: {}}}
    yield "sets, without a type", listed | {"rope_parameters": SETS | {FULL: {"rope_theta": 300.0}}}
    yield "sets and more", listed | {"rope_parameters": SETS | {"rope_theta": 700.0}}
    yield "sets and scaling", listed | {"rope_parameters": SETS, "rope_scaling": SCALED["linear"]}
    yield "sets and old scaling", listed | {"rope_parameters": SETS, "rope_scaling": {"type": "linear", "factor": 4.0}}
    yield "sets and scaling with a base", listed | {
        "rope_parameters": SETS, "rope_scaling": SCALED["linear"] | {"rope_theta": 900.0}
    }  # fmt: skip
    yield "sets and scaling {}", listed | {"rope_parameters": SETS, "rope_scaling": {}}
    yield "sets under the old name, base beside", listed | {"rope_scaling": SETS, "rope_theta": 700.0}
    yield "sets under both names", listed | {"rope_scaling": SETS, "rope_parameters": SETS}
    yield "full set under the old name", listed | {"rope_scaling": {FULL: SCALED["linear"]}}
    for name, scaled in SCALED.items():
        one = scaled | {"rope_theta": 300.0}
        without = {key: value for key, value in one.items() if key != LENGTH}
        yield f"sets, {name}", listed | {"rope_parameters": SETS | {FULL: one}}
        yield f"sets, {name} under a window", listed | {"rope_parameters": SETS | {SLIDING: one}}
        yield f"sets, {name}, share beside", listed | {
            "rope_parameters": SETS | {FULL: one}, "partial_rotary_factor": 0.5
        }  # fmt: skip
        if LENGTH in one:
            yield f"sets, {name}, two lengths", listed | {"rope_parameters": SETS | {FULL: one}, LENGTH: 16}
            yield f"sets, {name}, length beside", listed | {"rope_parameters": SETS | {FULL: without}, LENGTH: 16}
            yield f"sets, {name}, no length", listed | {"rope_parameters": SETS | {FULL: without}}
            yield f"sets, {name}, length null", listed | {"rope_parameters": SETS | {FULL: one | {LENGTH: None}}}
    untruncated = SCALED["yarn"] | {"rope_theta": 300.0, "truncate": False}
    yield "sets, truncate: false", listed | {"rope_parameters": SETS | {FULL: untruncated}}
    yield "sets, truncate: false beside", listed | {"rope_parameters": SETS | {FULL: SCALED["yarn"], "truncate": False}}
    yield "scaling, truncate: false", listed | {"rope_scaling": SCALED["yarn"] | {"truncate": False}}
    yield "scaling, two lengths", listed | {"rope_scaling": SCALED["yarn"], LENGTH: 16}
    yield "scaling, base beside", listed | {"rope_scaling": SCALED["linear"], "rope_theta": 300.0}


def _names(sizes: dict[str, Any]) -> Iterator[Variant]:
    old = {"rotary_dim": 8, "rotary_pct": 0.5, "rotary_emb_base": 300.0, "rope_local_base_freq": 300.0}
    old |= {"global_rope_theta": 300.0, "local_rope_theta": 300.0, "default_theta": 300.0, "rope_theta": 300.0}
    for name, value in old.items():
        yield f"{name}: {value}", sizes | {name: value}
    yield "rotary_dim and share", sizes | {"rotary_dim": 8, "partial_rotary_factor": 0.75}
    yield (
        "rotary_dim and share inside",
        sizes | {"rotary_dim": 8, "rope_parameters": DEFAULT | {"partial_rotary_factor": 0.75}},
    )
    yield "rotary_pct and share", sizes | {"rotary_pct": 0.5, "partial_rotary_factor": 0.75}
    yield (
        "rotary_pct and share inside",
        sizes | {"rotary_pct": 0.5, "rope_parameters": DEFAULT | {"partial_rotary_factor": 0.75}},
    )
    yield "rotary_emb_base and base", sizes | {"rotary_emb_base": 300.0, "rope_theta": 700.0}
    yield "rotary_emb_base and parameters", sizes | {"rotary_emb_base": 700.0, "rope_parameters": DEFAULT}
    yield "default_theta and base", sizes | {"default_theta": 300.0, "rope_theta": 700.0}
    yield "default_theta and parameters", sizes | {"default_theta": 700.0, "rope_parameters": {"rope_type": "default"}}


def _widths(sizes: dict[str, Any], facts: Facts) -> Iterator[Variant]:
    for head in (3, 6, 8, 15, 20, 32):
        yield f"head_dim: {head}", sizes | {"head_dim": head}
    for share in (0.05, 0.1, 0.3, 0.7, 0.8, 1.0, 1.5):
        yield f"share: {share}", sizes | {"partial_rotary_factor": share}
        yield f"share inside: {share}", sizes | {"rope_parameters": DEFAULT | {"partial_rotary_factor": share}}
        yield f"proportional: {share}", sizes | {
            "rope_parameters": DEFAULT | {"rope_type": "proportional", "partial_rotary_factor": share}
        }  # fmt: skip
    for name, value in (
        ("rotary_dim", 1),
        ("rotary_dim", 4),
        ("rotary_dim", 7),
        ("rotary_dim", 32),
        ("rotary_pct", 0.7),
    ):
        yield f"{name}: {value}, wide", sizes | {name: value}
    yield "heads do not divide", sizes | {"num_attention_heads": 3, "num_key_value_heads": 3}
    few = SCALED["longrope"] | {"rope_theta": 300.0, "long_factor": [2.0] * 4}
    yield "longrope, few factors", sizes | {"rope_parameters": few}
    if facts.sections:
        for sections in ([2, 2, 2], [4, 4, 4], [8, 0, 0], [1, 1], [3, 3, 2], [2, 2, 2, 2]):
            yield f"sections: {sections}", sizes | {"rope_parameters": DEFAULT | {"mrope_section": sections}}
            yield f"sections, old: {sections}", sizes | {
                "rope_scaling": {"type": "mrope", "mrope_section": sections}, "rope_theta": 300.0
            }  # fmt: skip
    yield "sections", sizes | {"rope_parameters": DEFAULT | {"mrope_section": [3, 3, 2]}}


def sizes() -> dict[str, dict[str, Any]]:
    """The tiny config of every type, as it was recorded."""
    cases = sorted(store.read(), key=lambda case: case.name == "sizes")
    return {case.type: case.config for case in cases if case.type in facts_of.types()}


def digest(kind: str, size: dict[str, Any]) -> int:
    """A number for the configs of a type, which changes when any of them does."""
    configs = list(walk(size, facts_of.types()[kind]))
    return zlib.crc32(json.dumps(configs, sort_keys=True).encode())


def write(found: dict[str, list[str | int]], source: str) -> None:
    """Store the outcomes of every type; types whose outcomes are the same share a row."""
    schemes: dict[str, int] = {}
    rows: dict[str, list[str]] = {}
    for kind, outcomes in sorted(found.items()):
        codes = [one if isinstance(one, int) else schemes.setdefault(one, len(schemes)) for one in outcomes]
        rows.setdefault(json.dumps(codes, separators=(",", ":")), []).append(kind)
    size = sizes()
    digests = {kind: digest(kind, size[kind]) for kind in sorted(found)}
    lines = [f'"source": {json.dumps(source)}', f'"digests": {json.dumps(digests)}']
    lines.append('"schemes": [\n' + ",\n".join(map(json.dumps, schemes)) + "\n]")
    lines.append(
        '"rows": [\n' + ",\n".join(f"[{json.dumps(' '.join(k))}, {codes}]" for codes, k in rows.items()) + "\n]"
    )
    FILE.write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")


def read() -> dict[str, list[str | int]]:
    """The outcomes of every type, in the order of its configs."""
    known = json.loads(FILE.read_text(encoding="utf-8"))
    schemes = known["schemes"]
    return {
        kind: [schemes[code] if code >= 0 else code for code in codes]
        for kinds, codes in known["rows"]
        for kind in kinds.split()
    }
