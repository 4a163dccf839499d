"""ConViT: heads that start as a convolution and open to content by a gate."""

import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from tests.schemes.helpers import attend, made, tokens

SIDE = 4
PLACES = np.stack([np.arange(SIDE * SIDE) % SIDE, np.arange(SIDE * SIDE) // SIDE], -1)
NINE = posenc.Dims(width=6, heads=9, head=4, trained=16)


def gated(params, gate):
    """The same parameters with one gate for all heads."""
    heads = params["heads"]["gate"].shape[0]
    return params | {"heads": {"gate": jnp.full(heads, gate)}}


def test_heads_start_as_a_convolution():
    """Nine heads that attend by place alone give each token the values of its nine neighbours, one for each head."""
    scheme, params = made("convit(locality=30.0)", NINE)
    q, k, v, _ = tokens(SIDE * SIDE, dims=NINE)
    out = np.asarray(attend(scheme, gated(params, 40.0), q, k, v, positions=PLACES, mask="full"))
    image, result = v.reshape(SIDE, SIDE, 9, 4), out.reshape(SIDE, SIDE, 9, 4)
    for head in range(9):
        right, down = head // 3 - 1, head % 3 - 1
        shifted = np.roll(image[:, :, head], (-down, -right), (0, 1))
        np.testing.assert_allclose(result[1:-1, 1:-1, head], shifted[1:-1, 1:-1], atol=1e-5)


@pytest.mark.parametrize(
    ("axes", "heads", "local"), [(2, 9, 9), (2, 8, 4), (2, 3, 1), (1, 5, 5), (3, 8, 8), (3, 30, 27)]
)
def test_each_head_of_the_largest_kernel_has_an_offset_of_its_own(axes, heads, local):
    scheme, params = made(f"convit(axes={axes}, locality=0.5)", posenc.Dims(4, heads, 4, 16))
    w = np.asarray(params["layer"]["w"])
    assert w.shape == (heads, axes + 1)
    np.testing.assert_array_equal(w[:local, -1], -0.5)
    offsets = w[:local, :-1]  # locality · 2 Δ, so Δ itself here
    side = round(local ** (1 / axes))
    assert len({tuple(o) for o in offsets}) == local and np.allclose(offsets.mean(0), 0)
    assert set(np.unique(offsets)) == set(np.arange(side) - (side - 1) / 2)
    assert np.abs(w[local:]).max(initial=0) < 0.1
    np.testing.assert_array_equal(params["heads"]["gate"], 1)


def test_the_column_comes_first_and_the_first_axis_changes_slowest():
    w = np.asarray(made("convit")[1]["layer"]["w"])
    np.testing.assert_array_equal(w[:, :2], [[-1, -1], [-1, 1], [1, -1], [1, 1]])
