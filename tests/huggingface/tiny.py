"""Tiny configs of every model type of transformers: a few features, several heads, grouped keys."""

from __future__ import annotations

from typing import Any

LENGTH = 41
"""The length of the text: no other size of a tiny model, and beyond its windows."""
DECODER = 37
"""The length of the text of a decoder beside an encoder."""

SIZES: dict[str, Any] = {
    **dict.fromkeys("hidden_size n_embd d_model dim embed_dim encoder_hidden_size decoder_hidden_size".split(), 64),
    **dict.fromkeys("embedding_size word_embed_proj_dim d_embed emb_dim word_embedding_size".split(), 64),
    **dict.fromkeys(
        "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads"
        " encoder_num_attention_heads decoder_num_attention_heads".split(),
        4,
    ),
    **dict.fromkeys(
        "num_key_value_heads encoder_num_key_value_heads decoder_num_key_value_heads num_kv_heads".split(), 2
    ),
    **dict.fromkeys("head_dim d_kv attention_head_dim kv_channels global_head_dim swa_head_dim".split(), 16),
    **dict.fromkeys(
        "intermediate_size n_inner d_ff hidden_dim moe_intermediate_size encoder_ffn_dim decoder_ffn_dim ffn_dim"
        " shared_expert_intermediate_size ffn_hidden_size d_inner expert_ffn_hidden_size"
        " moe_shared_expert_intermediate_size intermediate_size_mlp shared_intermediate_size".split(),
        32,
    ),
    **dict.fromkeys(
        "vocab_size src_vocab_size tgt_vocab_size decoder_vocab_size vocab_size_per_layer_input".split(), 67
    ),
    **dict.fromkeys("num_hidden_layers n_layer n_layers num_layers".split(), 8),
    **dict.fromkeys(
        "encoder_layers decoder_layers num_decoder_layers num_encoder_layers encoder_num_hidden_layers"
        " decoder_num_hidden_layers".split(),
        2,
    ),
    **dict.fromkeys("num_experts num_local_experts n_routed_experts moe_num_experts".split(), 4),
    **dict.fromkeys("num_experts_per_tok moe_k moe_topk num_experts_per_token".split(), 2),
    **dict.fromkeys("n_group topk_group num_expert_group".split(), 1),
    **dict.fromkeys("mamba_d_state ssm_state_size mamba_d_head state_size".split(), 16),
    **dict.fromkeys("mamba_n_heads mamba_num_heads".split(), 8),
    **dict.fromkeys("q_lora_rank kv_lora_rank".split(), 24),
    **dict.fromkeys("v_head_dim qk_rope_head_dim index_head_dim".split(), 16),
    "qk_nope_head_dim": 8,
    "index_n_heads": 2,
    **dict.fromkeys("linear_num_key_heads linear_num_value_heads".split(), 4),
    **dict.fromkeys("linear_key_head_dim linear_value_head_dim".split(), 16),
    "sliding_window": 9,
    "max_position_embeddings": 64,
    "attention_chunk_size": 12,
    "num_mem_blocks": 1,
    "lru_width": 64,
    "attention_window_size": 9,
    "hidden_size_per_layer_input": 8,
}
"""Sizes under the names that configs have for them."""


def shrink(config: dict[str, Any]) -> dict[str, Any]:
    """The settings that make a config small, of those that it has; also within its parts."""
    small = {name: value for name, value in SIZES.items() if name in config and config[name] is not None}
    for name, value in config.items():
        if name.endswith("_config") and isinstance(value, dict):
            part = shrink(value)
            if "model_type" in value:
                part["model_type"] = value["model_type"]
            small[name] = part
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        if isinstance(config.get(name), int) and config[name] >= 60:
            small[name] = 1
    return small
