"""xPos: a rotation and a factor whose centre does not matter, except to a cache."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc import Dims

X = posenc.parse("xpos(scale_base=16.0)")


def features(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_a_key_keeps_its_value_when_the_sequence_grows():
    """With a centre in the middle, every cached key is wrong one token later."""
    k = jnp.asarray(features(9, 8))
    short, long = X.key({}, k[:4], jnp.arange(4))[0], X.key({}, k, jnp.arange(9))[0]
    np.testing.assert_array_equal(long[:4], short)


def test_left_open_the_scale_base_is_half_the_training_length():
    assert posenc.bind(posenc.parse("xpos"), Dims(8, 1, 8, 1024)) == posenc.parse("xpos(scale_base=512.0)")


@pytest.mark.parametrize("far", [1200, -1200])
def test_positions_whose_factors_leave_float32_are_refused_and_no_number_inside_jit(far):
    q = features(2, 1, 8)
    run = lambda position: posenc.attend(X, {"layer": {}, "heads": {}}, q, q, q, positions=position)  # noqa: E731
    with pytest.raises(ValueError, match="1200 .*float32.* 10[0-9]{2} "):
        run(np.array([0, far]))
    assert np.isfinite(run(np.array([0, 1000]))).all()
    assert not np.isfinite(X.key({}, jnp.asarray(q[:, 0]), jnp.array([0, 2000]))[0]).all()
    jax.jit(run)(np.array([0, far]))  # traced positions have no value to refuse


def test_float16_which_holds_no_factors_is_refused_and_bfloat16_is_not():
    run = lambda dtype: posenc.attend(X, {"layer": {}, "heads": {}}, *[jnp.ones((2, 1, 8), dtype)] * 3)  # noqa: E731
    with pytest.raises(TypeError, match="float16.*bfloat16"):
        run(jnp.float16)
    assert jnp.isfinite(run(jnp.bfloat16)).all()
