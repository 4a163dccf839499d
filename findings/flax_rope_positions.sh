#!/usr/bin/env bash
# flax 0.12.12: nnx.MultiHeadAttention with RoPE refuses input_positions of every shape, the documented one too.
#
# `input_positions` is documented as [batch..., length]. dot_product_attention_with_rope maps the last axis of the
# positions together with the axis of heads, and nnx.RoPE flattens what is left of them with jnp.outer.
#
# Seen on 2026-11-28 with flax 0.12.12 and jax 0.12.0, Python 3.12, 4 heads of 8 features, 6 tokens:
#   [length]                 ValueError: vmap got inconsistent sizes
#   [batch, length]          ValueError: vmap got inconsistent sizes
#   [batch, length, heads]   TypeError: mul got incompatible shapes
#   [length, heads]          ValueError: vmap out_axes specification
# As many tokens as heads end in other errors: IndexError, and "must have the same seq_len".
set -euo pipefail
python=${PYTHON:-python3.12}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q "flax==0.12.12" "jax==0.12.0"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import functools

import flax
import jax
import jax.numpy as jnp
from flax import nnx

print("flax", flax.__version__, "jax", jax.__version__)


def outcome(heads, length, shape):
    """Return the largest difference from the call without positions, or the error."""
    attend = functools.partial(nnx.dot_product_attention_with_rope, rope=nnx.RoPE())
    layer = nnx.MultiHeadAttention(heads, 8 * heads, attention_fn=attend, decode=False, rngs=nnx.Rngs(0))
    x = jax.random.normal(jax.random.key(0), (2, length, 8 * heads))
    by_head = "heads" in shape
    positions = jnp.arange(length)[:, None] if by_head else jnp.arange(length)
    sizes = {"batch": 2, "length": length, "heads": heads}
    positions = jnp.broadcast_to(positions, [sizes[name] for name in shape.split()])
    try:
        return f"differs by {float(abs(layer(x, input_positions=positions) - layer(x)).max()):.0e}"
    except (ValueError, IndexError, TypeError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:60]}"


cases = [(4, 6, s) for s in ("length", "batch length", "length heads", "batch length heads")]
cases += [(4, 4, s) for s in ("length", "batch length")]
seen = {case: outcome(*case) for case in cases}
for (heads, length, shape), text in seen.items():
    print(f"{heads} heads, {length} tokens, [{shape}]: {text}")
assert all("Error" in text for text in seen.values()), "the behaviour has changed"
PYTHON
