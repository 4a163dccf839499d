"""ConViT: heads that start as a convolution and open to content by a gate."""

import numpy as np
import pytest

import posenc
from tests.schemes.helpers import made


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
