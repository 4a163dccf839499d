"""DeepSeek-V4, whose values turn with its keys: one base for layers with a window alone, one for those that compress.

Its two sets of rotary settings are called `main` and `compress` and not by types of layers.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from posenc.core.compose import windowed
from posenc.huggingface.facts import LENGTH, SLIDING, Facts
from posenc.huggingface.layer_types import period
from posenc.huggingface.precedence import BASE, SHARE
from posenc.huggingface.reading import read_rope_type
from posenc.huggingface.rope_types import RopeSettings
from posenc.huggingface.settings import Settings, head_size
from posenc.language.echo import echoed
from posenc.naming import spec
from posenc.schemes.by_parts import YaRN
from posenc.schemes.vo_rope import VORoPE

HEAVY, SPARSE = "heavily_compressed_attention", "compressed_sparse_attention"
RATIOS = {0: SLIDING, 4: SPARSE, 128: HEAVY}
"""The type of a layer by its entry in compress_ratios."""
SETS = {"main": (BASE, 1e4), "compress": ("compress_rope_theta", 1.6e5)}
"""The setting beside the sets that has the base of each, and its default."""
RAMP = "beta_fast", "beta_slow", "truncate"
"""YaRN's settings beside its factor and length that decide frequencies."""
SHARED = 64 / 512
"""The default of the share of a head that turns."""


def read_turned_values(config: Settings, facts: Facts) -> Any:
    """The scheme of a model whose one head is key and value at once."""
    width = config.get("sliding_window", facts.window)
    if width is None or width < 1:
        raise ValueError(f"sliding_window is {width}, and every layer of this model type has one; give at least 1.")
    width = width if config.get("is_causal", True) else 2 * width + 1
    sets = {name: windowed(_scheme(name, config, facts), width) for name in SETS}
    return period([sets["main" if label == SLIDING else "compress"] for label in _labels(config)])


def _labels(config: Settings) -> list[str]:
    """The type of each layer."""
    listed, ratios = config.get("layer_types"), config.get("compress_ratios")
    depth = config.get("num_hidden_layers", 43)
    if listed is None and ratios is not None:
        listed = [RATIOS.get(ratio, f"compression of {ratio}") for ratio in ratios]
    labels = ([HEAVY] * 3 + [SPARSE, HEAVY] * depth if listed is None else list(listed))[:depth]
    if odd := [label for label in labels if label not in RATIOS.values()]:
        raise ValueError(
            f"Layers of the type {echoed(odd[0])} are not read; posenc reads {', '.join(RATIOS.values())}."
        )
    if len(labels) != depth or not depth:
        raise ValueError(f"layer_types has {len(labels)} entries for {depth} layers; give one for each.")
    return labels


def _scheme(name: str, config: Settings, facts: Facts) -> VORoPE:
    """The scheme of a set, `main` or `compress`."""
    parameters = config.get("rope_scaling") or config.get("rope_parameters") or {}
    nested = all(isinstance(parameters.get(part), dict) for part in SETS)
    beside, usual = SETS[name]
    head = head_size(config, facts) or 512
    rotated = config.get("qk_rope_head_dim")
    share = config.get(SHARE)
    share = share if share is not None else SHARED if rotated is None else rotated / head
    base = config.get(beside, usual)
    settings = Settings(parameters[name] if nested else {} if name == "main" else parameters, {})
    if nested:
        base = settings.get(BASE, config.get(*SETS["main"]))
        share = settings.get(SHARE, config.get(SHARE))
    if base is None or base <= 0 or base == 1:
        raise ValueError(f"The base of {name!r} is {base}; give a base above 0 that is not 1, such as {usual}.")
    if share is None or not 0 < share <= 1 or int(head * share) % 2 or not int(head * share):
        raise ValueError(f"{SHARE} is {share}; give the share of a head of {head} features that turns, in whole pairs.")
    common = {"base": float(base), "layout": "interleaved", "fraction": int(head * share) / head, "at": "end"}
    scheme = VORoPE(**common)
    kind = settings.get("rope_type", settings.get("type", "default"))
    if kind not in ("default", "yarn"):
        raise ValueError(
            f"The rope_type {echoed(kind)} of the set {name!r} is not read: values turn with keys in this model type,"
            f" and posenc has that with 'yarn', or without scaling, as {spec(scheme)!r}."
        )
    if kind == "default":
        return scheme
    filled = {LENGTH: config.get("max_position_embeddings")} | ({} if nested else {"attention_factor": 1.0})
    yarn = RopeSettings("yarn", Settings(filled | dict(settings), {}), config, common)
    return _scaled(name, scheme, read_rope_type(yarn, facts))


def _scaled(name: str, scheme: VORoPE, yarn: YaRN) -> VORoPE:
    """The scheme of a set with the frequencies of YaRN, which turns the same features."""
    usual = YaRN(attention_factor=1.0)
    if any(getattr(yarn, setting) != getattr(usual, setting) for setting in ("attention_factor", *RAMP)):
        raise ValueError(
            f"The set {name!r} is {spec(yarn)!r}: values turn with keys in this model type, and posenc has that with"
            " attention_factor=1.0 and YaRN's own beta_fast, beta_slow and truncate only."
        )
    return dataclasses.replace(scheme, factor=yarn.factor, original=yarn.original) if yarn.factor > 1 else scheme
