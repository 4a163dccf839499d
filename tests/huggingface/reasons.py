"""Why model types are refused, and the settings that some need to be tiny."""

from __future__ import annotations

import re
from typing import Any

from posenc.huggingface.facts import FULL, SLIDING, Facts

INDEXED = "indexed_attention"

SETTINGS: dict[str, dict[str, Any]] = {
    "gptj": {"rotary_dim": 8},
    "codegen": {"rotary_dim": 8},
    "esm": {"vocab_size": 67, "pad_token_id": 1, "mask_token_id": 2},
    "zamba2": {"num_hidden_layers": 54},
    "xmod": {"default_language": "en_XX"},
    "gemma3n_text": {"num_kv_shared_layers": 0},
    "nemotron": {"num_key_value_heads": 2},
    "ministral": {"head_dim": 16},
    "hunyuan_v1_dense": {"head_dim": 16},
    "lfm2_moe": {"layer_types": ["conv", FULL] * 4},
    "lfm2": {"layer_types": ["conv", FULL] * 4},
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2},
    "bamba": {"attn_layer_indices": [1, 3]},
    "falcon_h1": {"mamba_d_ssm": 128},
    "granitemoehybrid": {"layer_types": ["linear_attention", FULL] * 4},
    "lfm3": {"layer_types": ["conv", FULL, SLIDING, "conv"] * 2},
    "flint": {"layer_types": [FULL, SLIDING, SLIDING, FULL] * 2},
    **dict.fromkeys(
        "qwen2_vl_text qwen2_5_vl_text qwen2_5_omni_text glm4v_text glm_ocr_text glm_image_text"
        " paddleocr_vl_text".split(),
        {"rope_parameters": {"rope_type": "default", "mrope_section": [2, 3, 3]}},
    ),
    **dict.fromkeys(
        "qwen3_vl_text qwen3_vl_moe_text qwen3_omni_moe_text cosmos3_edge_text".split(),
        {"rope_parameters": {"rope_type": "default", "mrope_section": [4, 2, 2]}},
    ),
    **dict.fromkeys(
        "qwen3_5_text qwen3_5_moe_text".split(),
        {
            "head_dim": 64,
            "layer_types": ["linear_attention", FULL] * 4,
            "rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.25, "mrope_section": [4, 2, 2]},
        },
    ),
    "glm4v_moe_text": {
        "head_dim": 32,
        "rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5, "mrope_section": [2, 3, 3]},
    },
    "kimi_linear": {"num_key_value_heads": 4, "layer_types": ["linear_attention", FULL] * 4},
    **dict.fromkeys(
        "deepseek_v3 deepseek_v32 axk1 axk2 youtu glm4_moe_lite glm_moe_dsa hy_v4 minicpm3 longcat_flash"
        " bailing_hybrid".split(),
        {"num_key_value_heads": 4, "first_k_dense_replace": 1},
    ),
    "mistral4": {"num_key_value_heads": 4, "first_k_dense_replace": 1, "head_dim": 24},
    "deepseek_v2": {"num_key_value_heads": 4, "first_k_dense_replace": 1, "num_experts_per_tok": 2},
    "gemma2": {"attn_logit_softcapping": 5.0},
    "glm5_next_text": {
        "num_key_value_heads": 4,
        "qk_rope_head_dim": 0,
        "layer_types": ["linear_attention", INDEXED] * 4,
    },
    "mimo_v2_flash": {"head_dim": 48},
    "deepseek_v4": {
        "num_key_value_heads": 1,
        "o_groups": 2,
        "qk_rope_head_dim": 8,
        "o_lora_rank": 8,
        "partial_rotary_factor": 0.5,
        "num_nextn_predict_layers": 0,
        "layer_types": [SLIDING, "heavily_compressed_attention", SLIDING, "compressed_sparse_attention"] * 2,
        "compress_rates": {"heavily_compressed_attention": 64, "compressed_sparse_attention": 64},
    },
    "esmc": {"num_key_value_heads": 4},
    "deepseek_ocr2_text": {"num_key_value_heads": 4, "mlp_layer_types": ["dense"] * 8},
}
"""What a tiny config needs beside small sizes."""
WHOLE: dict[str, dict[str, Any]] = {
    "emu3": {"vocabulary_map": {"<|extra_200|>": 1, "<image>": 2}},
    "granite4_vision": {"deepstack_layer_map": [], "spatial_target_layers": [], "downsample_rate": "4/8"},
    "perception_lm": {
        "vision_config": {
            "model_type": "timm_wrapper",
            "architecture": "vit_tiny_patch16_224",
            "model_args": {"embed_dim": 192},
        }
    },
}
"""What the config of a model of several parts needs, so that its part that reads a text can be found."""
_LISTS = {"short_factor": [1.0 + n / 10 for n in range(8)], "long_factor": [2.0 + n / 5 for n in range(8)]}
_YARN = {
    "rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "original_max_position_embeddings": 16, "mscale": 1.0,
    "mscale_all_dim": 1.0,
}  # fmt: skip
_BETAS = {
    "no beta": {"rope_parameters": _YARN | {"llama_4_scaling_beta": 0.0}},
    # counted from 1, a step would begin at the query in the middle whose weights are stored
    "steps": {"rope_parameters": _YARN | {"llama_4_scaling_beta": 0.5, "original_max_position_embeddings": 7}},
}
MORE: dict[str, dict[str, dict[str, Any]]] = {
    "phimoe": {
        "mscale": {
            "rope_theta": 300.0,
            "original_max_position_embeddings": 16,
            "rope_scaling": {
                "type": "longrope", "short_mscale": 1.3, "long_mscale": 1.3, "original_max_position_embeddings": 16,
                **_LISTS,
            },
        }
    },
    **dict.fromkeys(("ministral3", "mistral4"), _BETAS),
    "nemotron": {"share": {"partial_rotary_factor": 0.25}},
}  # fmt: skip
"""Configs of single types, beside small sizes."""
_QWEN = {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25, "mrope_section": [11, 11, 10]}
RELEASED: dict[str, dict[str, Any]] = {
    **dict.fromkeys("qwen3_5_text qwen3_5_moe_text".split(), {"rope_parameters": _QWEN}),
    **dict.fromkeys("glm4_moe qwen3_omni_moe_text glm4v_moe_text".split(), {"head_dim": 128}),
    "deepseek_v4": {
        "rope_parameters": None,
        "rope_scaling": {"type": "yarn", "factor": 16, "original_max_position_embeddings": 65536},
    },
    **dict.fromkeys("glm4v_text glm_image_text".split(), {"partial_rotary_factor": 0.5}),
}
"""What released configs of some types have beside the defaults of their classes."""
IMPLEMENTATION = {"falcon": "sdpa"}
"""Models whose eager attention differs from their usual one: Falcon's adds the penalties of ALiBi twice."""


def scaled(config: dict[str, Any], facts: Facts) -> bool:
    """Whether a config may multiply rotated queries and keys by a factor."""
    found = config.get("rope_parameters") or config.get("rope_scaling") or facts.rope or {}
    every = [found, *(one for one in found.values() if isinstance(one, dict))]
    return any(one.get("rope_type", one.get("type")) in ("yarn", "longrope", "su") for one in every)


def plain(config: dict[str, Any], facts: Facts) -> dict[str, Any]:
    """The same config with a plain rotation."""
    out = {name: value for name, value in config.items() if name != "rope_scaling"}
    default: dict[str, Any] = {"rope_type": "default", "rope_theta": 1e4}
    if facts.bases:
        default = {FULL: dict(default), SLIDING: dict(default)}
    found = config.get("rope_parameters") or facts.rope
    kept = {name: found[name] for name in ("llama_4_scaling_beta", "original_max_position_embeddings") if name in found}
    return out | {"rope_parameters": default | (kept if "llama_4_scaling_beta" in kept else {})}


NOTES = {
    **dict.fromkeys(
        "ernie4_5_vl_moe ernie4_5_vl_moe_text".split(),
        "its height and width take pairs in turn before time, which no scheme does; of a text alone it is"
        " \"rope(base=500000.0, layout='interleaved')\"",
    ),
    **dict.fromkeys(
        "mistral_large4 mistral_large4_text".split(),
        "its queries are multiplied by the logarithm of the position times a learned number of each head, plus another"
        " one, which no scheme does",
    ),
    **dict.fromkeys(
        "dots3_note dots3_note_text".split(),
        "its layers with a window have heads of another size than its other layers, which posenc does not read",
    ),
    **dict.fromkeys(
        "diffusion_gemma diffusion_gemma_text".split(),
        "its decoder fills a canvas of tokens that see both ways, beside the keys of its encoder, which was not"
        " compared; its encoder is that of 'gemma4_text'",
    ),
    **dict.fromkeys(
        "inkling_text inkling_mm_model".split(),
        'its scheme is "inkling", which mixes profiles of distance from the input of each layer; write that',
    ),
    "whisper": "its encoder adds \"sinusoidal(layout='halves', spacing='t2t')\" and its decoder \"learned\"",
    **dict.fromkeys(
        "xglm m2m_100 nllb-moe fsmt kosmos-2 kosmos-2.5 kosmos_2_text_model kosmos_2_5_text_model".split(),
        "its sinusoids, \"sinusoidal(layout='halves', spacing='t2t')\", begin at the position 2: write that and pass"
        " positions that begin there",
    ),
    **dict.fromkeys("dinov3_vit sapiens2 llama4_vision_model".split(), "it turns patches of images by two axes"),
    **dict.fromkeys(
        "grounding-dino mm-grounding-dino".split(),
        "its text part has masks and positions for each phrase, which no scheme does",
    ),
    **dict.fromkeys(
        "gemma4_assistant gemma4_unified_assistant".split(), "its layers attend to the keys of another model"
    ),
    "longt5": "its encoder's attention is in blocks",
    "gpt_neo": 'it adds learned positions and has windows on every other layer; write "learned + [nope, nope +'
    ' window(256)]" and pass a scale of 1 to attend',
    "lxmert": 'its encoder of texts adds "learned", and needs images beside',
    **dict.fromkeys(
        "hunyuan_v1_dense hunyuan_v1_moe hunyuan_vl hunyuan_vl_text".split(),
        "it normalises queries and keys after the rotation, with a weight for each feature",
    ),
    **dict.fromkeys("deberta deberta-v2 sew-d".split(), "positions enter by products with queries and keys (DeBERTa)"),
    **dict.fromkeys("xlnet transfo-xl".split(), "positions enter by products with queries (Transformer-XL)"),
    **dict.fromkeys("longformer led big_bird".split(), "its attention is in blocks"),
    "nanochat": 'its rotation turns the other way: write "rope" with its base, and pass positions -i',
    "nougat": "transformers 5.23 cannot make its config, whose part 'donut_swin' it does not know",
    "voxtral_realtime_text": "AutoModel of transformers 5.23 does not find its model, which was not compared",
    "higgs_audio_v2_tokenizer": "its model reads sound",
    "kyutai_speech_to_text": "it reads tokens of a text and of sound at once, and was not compared",
    "vits": "learned vectors of relative positions are multiplied with queries",
    "doge": "its scores have a mask that it makes from values",
    "squeezebert": "its attention is made of convolutions",
    **dict.fromkeys("layoutlm layoutlmv2 layoutlmv3 lilt udop".split(), "it adds positions on a page"),
    "bros": "queries are multiplied with positions on a page",
    "markuplm": "it adds paths in the tree of a document",
    "tapas": "it adds columns and rows of a table",
    **dict.fromkeys("mamba mamba2 falcon_mamba rwkv xlstm fnet".split(), "it has no softmax over keys"),
    **dict.fromkeys("chameleon_vqgan emu3_vqgan".split(), "its model reads images"),
    "perceiver": "it reads a text or images by learned queries, and was not compared",
    "speecht5": "it reads a text or sound, and was not compared",
    **{
        kind: f"its text part stands within thinker_config, of the type '{kind}_thinker', which is read; give that dict"
        for kind in ("qwen2_5_omni", "qwen3_omni_moe")
    },
}
"""What is known of some types."""
INPUTS = {
    "pixel_values": "images", "pixel_values_videos": "videos", "input_features": "sound", "input_values": "sound",
    "past_values": "time series", "hidden_states": "images or sound", "flattened_patches": "images",
}  # fmt: skip
"""What models read that do not read a text."""


def of(default: dict[str, Any], inputs: tuple[str, ...] | None) -> str:
    """Why a type is refused that has no facts. `inputs` are the arguments of its model; None without a model."""
    text = default.get("text_config") or {}
    if text.get("model_type"):
        return f"its text part, of the type {text['model_type']!r}, is not read"
    if inputs is None:
        return "transformers has no model of this type alone"
    if "input_ids" not in inputs:
        return f"its model reads {next((INPUTS[name] for name in inputs if name in INPUTS), 'no text')}"
    return "its attention was not compared"


def failed(kind: str, error: Exception) -> str:
    """Why a type is refused whose model could not be run, or computes something else."""
    label = "" if type(error).__name__ == "Differs" else f"its tiny model does not run ({type(error).__name__}): "
    first = str(error).splitlines()[0]
    return label + re.sub(r" from '/[^']*'", "", first)[:300]  # without the folders of this machine
