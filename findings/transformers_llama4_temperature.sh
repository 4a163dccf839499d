#!/usr/bin/env bash
# transformers 5.23.0: Llama 4's temperature counts left padding, and Ministral 3's "llama_4_scaling" starts a token
# later.
#
# Both multiply a query by 1 + a log(1 + floor(n / L)). Llama 4 takes n = index + 1 from the row as it is padded, and
# does not read position_ids; Ministral 3, whose setting bears Llama 4's name, takes n = position_ids.
#
# Seen on 2026-11-30 with transformers 5.23.0 and torch 2.13.0, Python 3.11, models of one layer, L = 8, 12 tokens:
#   first query that is scaled     Llama 4: index 7      Ministral 3: index 8
#   the same tokens behind 6 of padding, with attention_mask and position_ids, change the last layer's output
#     Llama 4                          by 0.2
#     Llama 4 without its temperature  by at most 1e-6
#     Ministral 3                      by at most 1e-6
set -euo pipefail
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q "transformers==5.23.0" "torch==2.13.0"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" - <<'PYTHON'
import torch
import transformers
from transformers import CONFIG_MAPPING, MODEL_MAPPING

print("transformers", transformers.__version__, "torch", torch.__version__)
TOKENS, PADDING, LENGTH = 12, 6, 8
SIZES = {"vocab_size": 50, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "head_dim": 16}
SIZES |= {"num_attention_heads": 2, "num_key_value_heads": 2, "initializer_range": 0.5}


def build(kind, **settings):
    """Return a tiny model whose weights depend on its kind alone."""
    torch.manual_seed(0)
    config = CONFIG_MAPPING[kind](**SIZES, **settings)
    return MODEL_MAPPING[type(config)](config).eval()


def llama4(a=0.5):
    """Return a Llama 4 of one layer without rotation, in which its temperature acts."""
    plain = {"no_rope_layers": [0], "layer_types": ["full_attention"], "moe_layers": [], "intermediate_size_mlp": 64}
    return build("llama4_text", floor_scale=LENGTH, attn_scale=a, attn_temperature_tuning=True, **plain)


def ministral3(a=0.5):
    """Return a Ministral 3 of one layer."""
    rope = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 16.0, "beta_fast": 32.0, "beta_slow": 1.0}
    rope |= {"mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": LENGTH}
    return build("ministral3", rope_parameters=rope | {"llama_4_scaling_beta": a}, max_position_embeddings=128)


@torch.no_grad()
def output(model, padding=0):
    """Return what a model makes of the same tokens behind padding."""
    tokens = torch.arange(1, TOKENS + 1)[None]
    padded = torch.nn.functional.pad(tokens, (padding, 0))
    mask = (padded > 0).long()
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    return model(padded, attention_mask=mask, position_ids=positions).last_hidden_state[0, padding:]


def first_scaled(make):
    """Return the index of the first token that the scale changes."""
    apart = (output(make()) - output(make(a=0.0))).abs().amax(1)
    return int((apart > 1e-5).nonzero()[0])


def moved(model):
    """Return by how much padding changes an output."""
    return float((output(model) - output(model, PADDING)).abs().max())


first = {"Llama 4": first_scaled(llama4), "Ministral 3": first_scaled(ministral3)}
print("first scaled:", first)
changes = {"Llama 4": moved(llama4()), "without it": moved(llama4(a=0.0)), "Ministral 3": moved(ministral3())}
print("moved by padding:", {name: f"{change:.1g}" for name, change in changes.items()})
assert first == {"Llama 4": LENGTH - 1, "Ministral 3": LENGTH}, "the behaviour has changed"
assert changes["Llama 4"] > 1e-3 > 1e-4 > max(changes["without it"], changes["Ministral 3"]), "the behaviour has changed"
PYTHON
