"""RoPE: what Su et al. prove of it, the bugs that others had, and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc import Dims

DIMS = Dims(width=8, heads=2, head=8, trained=16)


def features(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def turn(text, x, position):
    return posenc.parse(text).query({}, jnp.asarray(x), jnp.asarray(position))[0]


def attend(text, q, k, v):
    scheme = posenc.bind(posenc.parse(text), DIMS)
    run = jax.jit(lambda q, k, v: posenc.attend(scheme, posenc.init(scheme, jax.random.key(0), DIMS), q, k, v))
    return run(q, k, v)


def test_angles_in_a_bfloat16_model_are_those_of_float32():
    """In bfloat16, 8192 positions are 897."""
    x = np.ones((8192, 8), np.float32)
    exact = np.asarray(turn("rope", x, np.arange(8192)))
    ours = np.asarray(turn("rope", jnp.asarray(x, jnp.bfloat16), np.arange(8192)).astype(np.float32))
    assert np.abs(ours - exact).max() <= 2**-8 * np.abs(exact).max()
    assert len(np.unique(ours.round(6), axis=0)) > 8000


def test_a_fraction_that_is_an_even_number_but_for_rounding_is_taken():
    assert posenc.bind(posenc.parse("rope(fraction=0.3)"), Dims(8, 1, 20, 16)).fraction == 0.3


@pytest.mark.parametrize(("p", "head", "kept"), [(0.58, 100, 29), (0.5, 10, 2), (0.29, 200, 29), (1.0, 8, 4)])
def test_p_keeps_as_many_frequencies_as_its_product_says(p, head, kept):
    """int(0.58 * 50) is 28."""
    turned = turn(f"rope(p={p})", np.ones((1, head), np.float32), np.array([1]))[0, : head // 2]
    assert int((np.asarray(turned) != 1).sum()) == kept


def test_p_counts_the_frequencies_that_a_fraction_leaves():
    x, position = features(6, 16), np.arange(6)
    part = turn("rope(fraction=0.5, p=0.5)", x, position)
    np.testing.assert_array_equal(part[:, 8:], x[:, 8:])
    np.testing.assert_array_equal(part[:, :8], turn("rope(p=0.5)", x[:, :8], position))


@pytest.mark.parametrize(
    ("setting", "head", "least"), [("p=0.2", 8, 0.25), ("p=0.3", 6, 0.333334), ("p=0.4, fraction=0.5", 8, 0.5)]
)
def test_a_p_that_keeps_nothing_is_refused_with_the_smallest_that_does(setting, head, least):
    with pytest.raises(ValueError, match=rf"p={least}"):
        posenc.bind(posenc.parse(f"rope({setting})"), Dims(8, 1, head, 16))
    smallest = setting.replace(setting.split(",")[0], f"p={least}")
    posenc.bind(posenc.parse(f"rope({smallest})"), Dims(8, 1, head, 16))


@pytest.mark.ci
@pytest.mark.parametrize("text", ["rope", "xpos(scale_base=1e12)", "sinusoidal", "sandwich", "transformer_xl"])
def test_positions_of_more_than_31_bits_are_refused_and_nan_inside_jit(text):
    """A float beyond them would become the largest whole number in silence."""
    dims = Dims(8, 1, 8, 16)
    scheme = posenc.bind(posenc.parse(text), dims)
    params = posenc.init(scheme, jax.random.key(0), dims)
    q, far = features(2, 1, 8), np.array([0.0, 2.0**31], np.float32)

    def run(positions):
        if text == "sinusoidal":
            return posenc.embed(scheme, params, q[:, 0], positions=positions)
        return posenc.attend(scheme, params, q, q, q, positions=positions)

    with pytest.raises(ValueError, match="lie between"):
        run(far)
    assert np.isnan(jax.jit(run)(far)[1]).all()
    assert np.isfinite(run(np.array([0.0, 2.0**31 - 128], np.float32))).all()
