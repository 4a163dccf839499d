#!/usr/bin/env bash
# jax 0.12.0: under strict promotion jax.nn.dot_product_attention refuses queries, keys and values of one 16-bit type.
#
# All its inputs are bfloat16, so nothing in the call asks for a promotion. Inside, it asks jnp.result_type for a type
# that holds float32 too, and under jax_numpy_dtype_promotion="strict" that question is itself an error, although no
# array is promoted. jnp.promote_types is the same. The attention of Flax NNX ends alike.
#
# Seen on 2026-11-28 with jax 0.12.0 and flax 0.12.12, Python 3.12:
#   standard: every call returns bfloat16;   strict, float32: every call returns float32
#   strict, bfloat16 and float16: TypePromotionError from all of them, promote_types and result_type
set -euo pipefail
python=${PYTHON:-python3.12}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q "flax==0.12.12" "jax==0.12.0"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import flax
import jax
import jax.numpy as jnp
from flax import nnx

print("jax", jax.__version__, "flax", flax.__version__)
CALLS = {
    "jax.nn.dot_product_attention": lambda q: jax.nn.dot_product_attention(q, q, q),
    "jax.nn.dot_product_attention, causal": lambda q: jax.nn.dot_product_attention(q, q, q, is_causal=True),
    "flax.nnx.dot_product_attention": lambda q: nnx.dot_product_attention(q, q, q),
    "jnp.promote_types": lambda q: jnp.zeros((), jnp.promote_types(q.dtype, jnp.float32)),
    "jnp.result_type": lambda q: jnp.zeros((), jnp.result_type(q.dtype, jnp.float32)),
}


def outcome(call, dtype, rule):
    """Return the type of what a call returns, or the name of its error."""
    with jax.numpy_dtype_promotion(rule):
        try:
            return str(call(jnp.ones((2, 6, 4, 8), dtype)).dtype)
        except Exception as error:
            return type(error).__name__


seen = {}
for name, call in CALLS.items():
    for rule, dtype in (("standard", "bfloat16"), ("strict", "float32"), ("strict", "bfloat16"), ("strict", "float16")):
        seen[name, rule, dtype] = outcome(call, dtype, rule)
        print(f"{rule:8} {dtype:8} {name}: {seen[name, rule, dtype]}")
for (name, rule, dtype), text in seen.items():
    narrow = rule == "strict" and dtype != "float32"
    standard = dtype if "attention" in name else "float32"
    assert text == ("TypePromotionError" if narrow else standard), f"{name} has changed"
PYTHON
