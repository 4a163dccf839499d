#!/usr/bin/env bash
# transformers 5.23.0: a setting of position that is null in config.json is another model than one that is left out.
#
# JSON writes null for "not set", and most settings take it so. These four do not.
#
# Seen on 2026-11-28 with transformers 5.23.0 and torch 2.13.0, Python 3.11:
#   mistral, is_causal null              queries see what comes after them: the causal mask is None
#   llama, YaRN's truncate null          other frequencies than without it; they are those of false
#   glm, partial_rotary_factor null      8 frequencies, the whole head; 4 without it
#   mellum, rope_scaling null            no rotary settings at all; without it a set for each type of layer
set -euo pipefail
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q "transformers==5.23.0" "torch==2.13.0"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" - <<'PYTHON'
import torch
import transformers
from transformers import CONFIG_MAPPING, AutoModel
from transformers.masking_utils import create_causal_mask

print("transformers", transformers.__version__, "torch", torch.__version__)
SIZES = {
    "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16, "num_hidden_layers": 1,
    "vocab_size": 9, "pad_token_id": 0, "intermediate_size": 32,
}
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 64}


def config(kind, **more):
    return CONFIG_MAPPING[kind](**SIZES, **more)


def frequencies(kind, **more):
    return AutoModel.from_config(config(kind, **more)).rotary_emb.inv_freq


def mask(**more):
    return create_causal_mask(
        config=config("mistral", attn_implementation="eager", **more), inputs_embeds=torch.zeros(1, 3, 64),
        attention_mask=None, past_key_values=None, position_ids=torch.arange(3)[None],
    )


absent, null, false = (frequencies("llama", rope_parameters=YARN | t) for t in ({}, {"truncate": None}, {"truncate": False}))
seen = {
    "mistral, is_causal": (mask() is not None, mask(is_causal=None) is None),
    "llama, truncate": (not torch.allclose(absent, null), torch.allclose(null, false)),
    "glm, partial_rotary_factor": (len(frequencies("glm")), len(frequencies("glm", partial_rotary_factor=None))),
    "mellum, rope_scaling": (
        sorted(config("mellum").rope_parameters), config("mellum", rope_scaling=None).rope_parameters,
    ),
}
for name, (without, with_null) in seen.items():
    print(f"{name}: left out {without}, null {with_null}")
assert seen["mistral, is_causal"] == seen["llama, truncate"] == (True, True), "masks or truncate have changed"
assert seen["glm, partial_rotary_factor"] == (4, 8), "the share of a head has changed"
assert len(seen["mellum, rope_scaling"][0]) == 2 and seen["mellum, rope_scaling"][1] is None, "mellum has changed"
PYTHON
