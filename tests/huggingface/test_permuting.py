"""Weights and features permuted from one layout of pairs to the other."""

import jax
import numpy as np
import pytest

import posenc
from posenc.huggingface import permute


@pytest.mark.parametrize("settings", ["", "fraction=0.5", "base=500.0"])
def test_permuted_weights_give_equal_attention_in_the_other_layout(settings):
    """One model's weights in the other's code are gibberish until both projections are permuted."""
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(7, 16)).astype(np.float32), rng.normal(0, 0.25, (3, 16, 2, 8)).astype(np.float32)
    fraction = 0.5 if "fraction" in settings else 1.0

    def attend(layout, w):
        scheme = posenc.parse(f"rope(layout={layout!r}{settings and ', ' + settings})")
        q, k, v = (np.einsum("lw,whd->lhd", x, one) for one in w)
        return jax.jit(lambda q, k, v: posenc.attend(scheme, {"layer": {}, "heads": {}}, q, k, v))(q, k, v)

    half = attend("half", weights)
    moved = [permute(w, "interleaved", fraction=fraction) for w in weights[:2]]
    np.testing.assert_allclose(attend("interleaved", [*moved, weights[2]]), half, atol=1e-6)
    assert np.abs(attend("interleaved", [moved[0], weights[1], weights[2]]) - half).max() > 1e-2
    assert np.abs(attend("interleaved", weights) - half).max() > 1e-2
    back = [permute(w, "half", fraction=fraction) for w in moved]
    np.testing.assert_array_equal(back, weights[:2])


def test_features_are_permuted_along_any_axis_and_in_any_library():
    w = np.arange(8)
    np.testing.assert_array_equal(permute(w, "half"), [0, 2, 4, 6, 1, 3, 5, 7])
    np.testing.assert_array_equal(permute(w, "interleaved"), [0, 4, 1, 5, 2, 6, 3, 7])
    np.testing.assert_array_equal(permute(w, "half", fraction=0.5), [0, 2, 1, 3, 4, 5, 6, 7])
    torch_like = np.arange(16).reshape(1, 8, 2)
    np.testing.assert_array_equal(permute(torch_like, "half", axis=1)[0, :, 0], 2 * permute(w, "half"))
    assert isinstance(permute(jax.numpy.arange(8), "half"), jax.Array)


def test_a_layout_without_name_and_an_odd_head_are_refused():
    with pytest.raises(ValueError, match="'half' or 'interleaved'"):
        permute(np.zeros(4), "halves")
    with pytest.raises(ValueError, match="has 5"):
        permute(np.zeros(5), "half")
