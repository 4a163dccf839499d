"""A mask made as docs/pytorch.md makes it gives PyTorch's attention the scheme's own output."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc

DIMS = posenc.Dims(width=32, heads=4, head=8, trained=16)
LENGTH = 12


def mask_of(scheme, params):
    zero = jnp.zeros((1, LENGTH, DIMS.heads, DIMS.head))
    one = jnp.broadcast_to(jnp.eye(LENGTH)[None, :, None, :], (1, LENGTH, DIMS.heads, LENGTH))
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(posenc.attend(scheme, params, zero, zero, one, mask="causal"))).transpose(0, 2, 1, 3)


def attention(q, k, v, mask, scale):
    """Softmax of scale · q·k + mask over the keys, in NumPy: what `scaled_dot_product_attention` computes."""
    scores = scale * np.einsum("bqhd,bkhd->bhqk", q, k) + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhqk,bkhd->bqhd", weights / weights.sum(-1, keepdims=True), v)


@pytest.mark.parametrize("text", ["alibi", "t5", "kerple", "sandwich", "rope"])
def test_a_mask_carries_a_scheme_that_reads_positions_alone_and_no_other(text):
    scheme = posenc.bind(text, DIMS)
    params = posenc.init(scheme, jax.random.key(1), DIMS)
    q, k, v = np.random.default_rng(0).normal(size=(3, 1, LENGTH, DIMS.heads, DIMS.head)).astype(np.float32)
    ours = np.asarray(posenc.attend(scheme, params, q, k, v, mask="causal"))
    mask = mask_of(scheme, params)
    scale = 1.0 if text == "t5" else DIMS.head**-0.5  # T5 does not divide
    close = np.allclose(attention(q, k, v, mask, scale), ours, atol=1e-5)
    assert close == (text != "rope"), "no mask can rotate queries and keys"
    try:
        import torch
    except ImportError:
        return
    q, k, v, mask = (torch.from_numpy(np.ascontiguousarray(a)) for a in (q, k, v, mask))
    theirs = torch.nn.functional.scaled_dot_product_attention(
        q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), attn_mask=mask, scale=scale
    ).transpose(1, 2)
    assert np.allclose(theirs.numpy(), ours, atol=1e-5) == close
