"""RoPE of a part: fractions, shares of frequencies, slices for axes, and numbers given one by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc import Dims
from tests.golden.turned import turned
from tests.schemes.helpers import bias

DIMS = posenc.Dims(width=16, heads=2, head=8, trained=16)


def made(text, dims=DIMS):
    return posenc.bind(text, dims)


def features(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def test_features_beyond_the_widths_stay():
    q = jnp.asarray(features(5, 8))
    for layout in ("interleaved", "half", "half_per_axis"):
        out, _ = made(f"rope_axes(widths=(4, 2), layout={layout!r})").query({}, q, jnp.ones((5, 2), jnp.int32))
        np.testing.assert_array_equal(out[:, 6:], q[:, 6:])
        assert jnp.abs(out[:, :6] - q[:, :6]).min() > 0


def test_slices_for_axes_cost_what_one_rotation_costs():
    dims = posenc.Dims(width=512, heads=4, head=128, trained=64)
    q, places = jnp.zeros((256, 128)), jnp.zeros((256, 4), jnp.int32)

    def cost(scheme, positions):
        return jax.jit(lambda q, p: scheme.query({}, q, p)[0]).lower(q, positions).compile().cost_analysis()["flops"]

    rope = cost(posenc.bind("rope(layout='interleaved')", dims), places[:, 0])
    assert cost(posenc.bind("rope_axes(widths=(32, 32, 32, 32))", dims), places) <= 1.02 * rope
    assert cost(posenc.bind("rope_axes(widths=(16, 56, 56))", dims), places[:, :3]) <= 1.02 * rope


def test_frequencies_given_one_by_one_are_those_that_turn():
    x, positions = features(1, 2, 5, 8), np.arange(5) * 3
    given = tuple((10000.0 ** (-np.arange(0, 8, 2) / 8)).tolist())
    ours = turned(made(f"rope(frequencies={given!r})"), "query", x, positions)
    np.testing.assert_array_equal(ours, turned(made("rope"), "query", x, positions))
    back = tuple(-w for w in given)
    returned = turned(made(f"rope(frequencies={back!r})"), "query", ours, positions)
    np.testing.assert_allclose(returned, x, atol=1e-6)


def test_slopes_given_one_by_one_are_those_of_the_heads():
    dims, far = posenc.Dims(width=16, heads=4, head=4, trained=16), np.arange(6)
    scheme = posenc.bind("alibi(slopes=(1.0, 0.5, 0.0, 0.25))", dims)
    ours = bias(scheme, {"layer": {}, "heads": {}}, far)
    np.testing.assert_allclose(ours, -np.array([1, 0.5, 0, 0.25])[:, None, None] * np.abs(far[:, None] - far), atol=0)
    sided = posenc.bind("alibi(form='sided', slopes=(1.0, 0.5, 0.0, 0.25))", dims)
    assert set(posenc.init(sided, jax.random.key(0), dims)["heads"]) == {"past", "future"}


def test_a_fraction_that_is_an_even_number_but_for_rounding_is_taken():
    assert posenc.bind(posenc.parse("rope(fraction=0.3)"), Dims(8, 1, 20, 16)).fraction == 0.3


@pytest.mark.parametrize(("p", "head", "kept"), [(0.58, 100, 29), (0.5, 10, 2), (0.29, 200, 29), (1.0, 8, 4)])
def test_p_keeps_as_many_frequencies_as_its_product_says(p, head, kept):
    """int(0.58 * 50) is 28."""
    out, _ = made(f"rope(p={p})", Dims(8, 1, head, 16)).query({}, jnp.ones((1, head)), jnp.array([1]))
    assert int((out[0, : head // 2] != 1).sum()) == kept


@pytest.mark.parametrize(
    ("setting", "head", "least"), [("p=0.2", 8, 0.25), ("p=0.3", 6, 0.333334), ("p=0.4, fraction=0.5", 8, 0.5)]
)
def test_a_p_that_keeps_nothing_is_refused_with_the_smallest_that_does(setting, head, least):
    with pytest.raises(ValueError, match=rf"p={least}"):
        posenc.bind(posenc.parse(f"rope({setting})"), Dims(8, 1, head, 16))
    smallest = setting.replace(setting.split(",")[0], f"p={least}")
    posenc.bind(posenc.parse(f"rope({smallest})"), Dims(8, 1, head, 16))
