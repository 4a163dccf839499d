"""What stands in the code of Hugging Face's models and in no config, by `model_type` (transformers 5.23)."""

from __future__ import annotations

from typing import Any

LENGTH = "original_max_position_embeddings"
FULL, SLIDING, CHUNKED = "full_attention", "sliding_attention", "chunked_attention"

INTERLEAVED = frozenset("codegen cohere cohere2 ernie4_5 ernie4_5_moe glm glm4 gptj helium llama4 llama4_text".split())
"""Models whose code turns feature 2i with 2i + 1."""
EVERY = {"cohere2": 4, "gemma2": 2, "gemma3": 6, "gemma3_text": 6, "gpt_oss": 2, "olmo3": 4}
"""Models with windows of which one layer in so many sees everything."""
LLAMA4 = frozenset({"llama4", "llama4_text"})
HALF_NOPE = LLAMA4 | {"smollm3"}
"""Models that turn nothing in one layer of so many, 4 unless said."""
ASKED = {
    "qwen2": 28, "qwen2_5_vl": 80, "qwen2_5_vl_text": 80, "qwen2_moe": 28, "qwen2_vl": 80, "qwen2_vl_text": 80,
    "qwen3": 28, "qwen3_moe": 0, "smollm3": 0,
}  # fmt: skip
"""Models that have windows only where use_sliding_window is true, and how many layers come before the first."""
BASES = {
    "cohere": 5e5, "ernie4_5": 5e5, "ernie4_5_moe": 5e5, "gemma3": 1e6, "gemma3_text": 1e6, "gpt_oss": 150000.0,
    "helium": 1e5, "llama4": 5e5, "llama4_text": 5e5, "mixtral": 1e6, "olmo3": 5e5, "phimoe": 1e6, "smollm3": 2e6,
}  # fmt: skip
"""The rope_theta of models whose configs may leave it out; of the others it is 10000."""
LOCAL = {"gemma3": 1e4, "gemma3_text": 1e4}
"""Models whose layers with a window have a base of their own, rope_local_base_freq, and no scaling."""
FRACTIONS = {
    "glm": 0.5, "glm4": 0.5, "glm4_moe": 0.5, "gpt_neox": 0.25, "nemotron": 0.5, "persimmon": 0.5,
    "phi": 0.5, "qwen3_next": 0.25, "recurrent_gemma": 0.5, "stablelm": 0.25,
}  # fmt: skip
"""The share of a head that is turned where partial_rotary_factor is left out; by other models all of it."""
WIDTHS = {"codegen": 64, "gptj": 64}
"""Models that say by rotary_dim alone, and not as a share, how many features of a head they turn."""
OLD_NAMES = {"rope_theta": "rotary_emb_base", "partial_rotary_factor": "rotary_pct"}
"""What transformers 4 calls these settings of GPT-NeoX."""


def first(*values: Any) -> Any:
    """The first value that is given; 0 is one, and a scheme's to refuse."""
    return next((value for value in values if value is not None), None)


def head_size(config: Any) -> int | None:
    """How many features a head has, where a config says it."""
    width = first(config.get("hidden_size"), config.get("n_embd"))
    heads = first(config.get("num_attention_heads"), config.get("n_head"))
    head = first(config.get("head_dim"), width // heads if width and heads else None)
    if head is not None and head < 1:
        raise ValueError(f"A head of this config has {head} features; it must have at least 1.")
    return head
