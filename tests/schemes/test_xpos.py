"""xPos: factors that leave the range of a type are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc

X = posenc.parse("xpos(scale_base=16.0)")


def features(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


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
