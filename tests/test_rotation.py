"""Angles that keep their precision, and rotations of pairs, against float128 and complex numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.numerics.rotation import angles, frequencies

FAR = np.array([0, 1, -1, 255, 257, 4097, 131071, -131071, 2**20, 2**24 + 1, -(2**30), 2**31 - 1], np.int32)


def error(position, frequency, dtype):
    """How far the sines and cosines of our angles are from those in extended precision."""
    with jax.enable_x64(dtype == "float64"):
        ours = np.asarray(jax.jit(lambda p: angles(p, frequency, jnp.dtype(dtype)))(position), np.longdouble)
    true = np.outer(position.astype(np.longdouble), frequency.astype(np.longdouble))
    return np.abs(np.exp(1j * ours) - np.exp(1j * true)).max()


@pytest.mark.parametrize("base", [10000.0, 500000.0, 0.5])
def test_float32_angles_of_whole_positions_are_exact_however_far(base):
    assert error(FAR, frequencies(64, base), "float32") < 1e-6
    plain = FAR.astype(np.float32)[:, None] * frequencies(64, base).astype(np.float32)
    assert np.abs(np.sin(plain.astype(float)) - np.sin(np.outer(FAR, frequencies(64, base)))).max() > 0.1


def test_real_positions_are_as_exact():
    position = np.float32([0.25, -0.25, 1e3 + 0.5, 131071.75, -65535.5, 1e6])
    assert error(position, frequencies(64, 10000.0), "float32") < 6e-7


def test_nan_and_infinite_positions_give_nan_rather_than_an_angle():
    assert np.isnan(angles(jnp.float32([jnp.nan, jnp.inf]), frequencies(4, 10000.0), jnp.float32)).all()


@pytest.mark.ci
def test_the_slope_of_an_angle_in_a_real_position_is_its_frequency():
    frequency = frequencies(8, 10000.0)
    for position in (0.0, 7.0, 7.5, -3.25):
        slope = jax.jacfwd(lambda p: angles(p[None], frequency, jnp.float32)[0])(jnp.float32(position))
        np.testing.assert_allclose(slope, frequency, rtol=1e-6)


def test_beyond_31_bits_a_real_position_has_no_angle():
    """float32 to int32 saturates: without a refusal all of these would turn alike."""
    far = jnp.float32([2.0**31, 3e9, -3e9, 1e30])
    assert np.isnan(angles(far, frequencies(4, 10000.0), jnp.float32)).all()
    with jax.enable_x64(True):
        whole = angles(jnp.array([2**31, 5, -(2**31), -(2**31) - 1]), frequencies(4, 10000.0), jnp.float32)
        np.testing.assert_array_equal(np.isnan(whole).all(1), [True, False, False, True])
