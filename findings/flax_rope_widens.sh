#!/usr/bin/env bash
# flax 0.12.12: nnx.RoPE turns bfloat16 queries and keys into float32, and so attention in a bfloat16 layer.
#
# Its tables of cosines are float32 and the product is not cast back. nnx.dot_product_attention_with_rope then mixes
# float32 queries and keys with bfloat16 values and returns float32, unless it is told dtype=. Inside
# nnx.MultiHeadAttention the layer's dtype hides that: the output is bfloat16 again, of twice the bytes in between.
#
# Seen on 2026-11-28 with flax 0.12.12 and jax 0.12.0, Python 3.12:
#   nnx.RoPE(bfloat16) -> float32;   dot_product_attention_with_rope(bfloat16) -> float32;   the same without -> bfloat16
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

print("flax", flax.__version__, "jax", jax.__version__)
q, rope = jnp.ones((2, 6, 4, 8), jnp.bfloat16), nnx.RoPE()
seen = {
    "RoPE": rope(q.swapaxes(1, 2)),
    "with RoPE": nnx.dot_product_attention_with_rope(q, q, q, rope=rope),
    "with RoPE, dtype=": nnx.dot_product_attention_with_rope(q, q, q, rope=rope, dtype=jnp.bfloat16),
    "without": nnx.dot_product_attention(q, q, q),
}
for name, out in seen.items():
    print(f"{name}: bfloat16 -> {out.dtype}")
types = [str(out.dtype) for out in seen.values()]
assert types == ["float32", "float32", "bfloat16", "bfloat16"], "the behaviour has changed"
PYTHON
