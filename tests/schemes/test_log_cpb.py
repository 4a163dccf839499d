"""The continuous position bias keeps no hidden layer of all pairs."""

import jax
import jax.numpy as jnp

import posenc
from tests.schemes.helpers import DIMS, made


def test_no_array_holds_the_hidden_layer_of_all_pairs():
    scheme, params = made("log_cpb(hidden=256)")
    n = 96
    q = jnp.zeros((n, DIMS.heads, DIMS.head))
    loss = lambda p: (posenc.attend(scheme, p, q, q, q) ** 2).sum()  # noqa: E731
    memory = jax.jit(jax.grad(loss)).lower(params).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 4 * n * n * 256 / 2
