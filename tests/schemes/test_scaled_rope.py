"""RoPE for longer contexts by a factor that is known beforehand: pi, ntk, by_parts, yarn, llama3 and hope."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc import Dims
from posenc.numerics.rotation import frequencies
from tests.golden.spectrum import spectrum
from tests.schemes.helpers import tokens

DIMS = Dims(width=16, heads=1, head=16, trained=64)


def made(text, dims=DIMS):
    return posenc.bind(posenc.parse(text), dims)


@pytest.mark.parametrize("factor", [2.5, 4.0])
def test_position_interpolation_is_rope_at_scaled_positions(factor):
    q, k, v, _ = tokens(9, dims=DIMS)
    none, index = {"layer": {}, "heads": {}}, np.array([0, 3, 1, 8, 8, 20, 400, 7, 5000], np.int32)
    scaled = posenc.parse(f"rope @ scale({factor})")
    placed = posenc.place(scaled, jax.random.key(0), {"index": index, "length": 9})
    run = jax.jit(posenc.attend, static_argnums=0)
    ours = run(made(f"pi(factor={factor})"), none, q, k, v, positions=index)
    np.testing.assert_allclose(ours, run(scaled, none, q, k, v, positions=placed), atol=2e-6)


def test_where_all_pairs_are_fast_none_is_divided():
    """The released code's line runs backwards here, and divides them all."""
    fast = "factor=4.0, original=100000, base=2.0"
    np.testing.assert_allclose(spectrum(made(f"yarn({fast})"), 16)[0], frequencies(16, 2.0), rtol=1e-12)


def test_hope_trained_on_fewer_than_7_tokens_turns_nothing():
    (q, *_), position = tokens(4, dims=DIMS), jnp.array([0, 1, 30, 700])
    turned = lambda trained: made(f"hope(trained={trained})").query({}, q[:, 0], position)[0]  # noqa: E731
    np.testing.assert_array_equal(turned(6), q[:, 0])
    assert np.abs(turned(7) - q[:, 0]).max() > 0.1
