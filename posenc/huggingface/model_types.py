"""Constants in the code of Hugging Face's models that a config may leave out, by `model_type`.

All of them are those of transformers 5.23.
"""

from __future__ import annotations

from typing import Any

LENGTH = "original_max_position_embeddings"
FULL, SLIDING, CHUNKED = "full_attention", "sliding_attention", "chunked_attention"

INTERLEAVED = frozenset("codegen cohere cohere2 ernie4_5 ernie4_5_moe glm glm4 gptj helium llama4 llama4_text".split())
"""Models whose code pairs feature 2i with 2i + 1."""
FULL_EVERY = {"cohere2": 4, "gemma2": 2, "gemma3": 6, "gemma3_text": 6, "gpt_oss": 2, "olmo3": 4}
"""Models with windows, and the period of the layers without one."""
LLAMA4 = frozenset({"llama4", "llama4_text"})
PARTLY_NOPE = LLAMA4 | {"smollm3"}
"""Models with a layer without RoPE every `no_rope_layer_interval` layers, 4 by default."""
OPTIONAL_WINDOW = {
    "qwen2": 28, "qwen2_5_vl": 80, "qwen2_5_vl_text": 80, "qwen2_moe": 28, "qwen2_vl": 80, "qwen2_vl_text": 80,
    "qwen3": 28, "qwen3_moe": 0, "smollm3": 0,
}  # fmt: skip
"""Models that have windows only where use_sliding_window is true, and the number of layers before the first."""
BASES = {
    "cohere": 5e5, "ernie4_5": 5e5, "ernie4_5_moe": 5e5, "gemma3": 1e6, "gemma3_text": 1e6, "gpt_oss": 150000.0,
    "helium": 1e5, "llama4": 5e5, "llama4_text": 5e5, "mixtral": 1e6, "olmo3": 5e5, "phimoe": 1e6, "smollm3": 2e6,
}  # fmt: skip
"""The default rope_theta of models; 10000 for all others."""
LOCAL = {"gemma3": 1e4, "gemma3_text": 1e4}
"""Models whose layers with a window have a separate base, rope_local_base_freq, and no scaling: its default."""
FRACTIONS = {
    "glm": 0.5, "glm4": 0.5, "glm4_moe": 0.5, "gpt_neox": 0.25, "nemotron": 0.5, "persimmon": 0.5,
    "phi": 0.5, "qwen3_next": 0.25, "recurrent_gemma": 0.5, "stablelm": 0.25,
}  # fmt: skip
"""The default partial_rotary_factor, the share of a head that is rotated; 1 for all others."""
WIDTHS = {"codegen": 64, "gptj": 64}
"""Models with rotary_dim, a number of rotated features, instead of a share: its default."""
OLD_NAMES = {"rope_theta": "rotary_emb_base", "partial_rotary_factor": "rotary_pct"}
"""The names of these settings of GPT-NeoX in transformers 4."""


def first(*values: Any) -> Any:
    """The first value that is not None. A 0 counts, for the scheme to refuse."""
    return next((value for value in values if value is not None), None)


def head_size(config: Any) -> int | None:
    """The number of features of a head; None where a config leaves it open."""
    width = first(config.get("hidden_size"), config.get("n_embd"))
    heads = first(config.get("num_attention_heads"), config.get("n_head"))
    head = first(config.get("head_dim"), width // heads if width and heads else None)
    if head is not None and head < 1:
        raise ValueError(f"A head of this config has {head} features; give it at least 1.")
    return head
