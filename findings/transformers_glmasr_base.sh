#!/usr/bin/env bash
# transformers 5.23.0: a glmasr config ignores rope_theta of its text part, which its type of text model reads.
#
# The text part is a llama config. Alone, llama takes rope_theta beside its other settings. Inside glmasr, defaults of
# rope_parameters are laid under the text part first, and they win over rope_theta.
#
# Seen on 2026-11-28 with transformers 5.23.0 and torch 2.13.0, Python 3.11:
#   llama, rope_theta 500000              base 500000
#   glmasr, text_config with rope_theta   base 10000, without a warning
#   glmasr, inside rope_parameters        base 500000
set -euo pipefail
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q "transformers==5.23.0" "torch==2.13.0"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" - <<'PYTHON'
import transformers
from transformers import CONFIG_MAPPING

print("transformers", transformers.__version__)


def base(**text):
    """Return the base that glmasr's text part ends up with."""
    outer = CONFIG_MAPPING["glmasr"](text_config={"model_type": "llama", **text})
    return outer.text_config.rope_parameters["rope_theta"]


seen = {
    "llama alone": CONFIG_MAPPING["llama"](rope_theta=5e5).rope_parameters["rope_theta"],
    "glmasr, flat": base(rope_theta=5e5),
    "glmasr, nested": base(rope_parameters={"rope_type": "default", "rope_theta": 5e5}),
}
for name, value in seen.items():
    print(f"{name}: {value}")
assert list(seen.values()) == [5e5, 1e4, 5e5], "the behaviour has changed"
PYTHON
