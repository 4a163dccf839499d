"""A slice of the head that is turned, at its end or for each axis; numbers given one by one for pairs and heads."""

import jax
import jax.numpy as jnp
import numpy as np

import posenc
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
