"""Plane waves: each feature pair one wave, so a shift in the plane turns every pair by an angle of its own."""

import jax.numpy as jnp
import numpy as np
import pytest

import posenc

NONE = {"layer": {}, "heads": {}}


def encoded(positions, width=8):
    return np.asarray(
        posenc.embed(posenc.parse("sinusoidal_2d"), NONE, jnp.zeros((len(positions), width)), positions=positions)
    )


def test_a_shift_of_the_plane_keeps_products_of_encodings(x64):
    rng = np.random.default_rng(0)
    p, shift = rng.uniform(-1, 1, (5, 2)), np.array([[0.3, -0.7]])
    one, other = encoded(p), encoded(p + shift)
    np.testing.assert_allclose(one @ one.T, other @ other.T, atol=1e-12)
    np.testing.assert_allclose((one**2).sum(-1), 4, atol=1e-12)


def test_the_two_axes_are_not_exchangeable_and_the_first_wave_runs_along_the_first():
    a, b = encoded(np.array([[0.4, 0.0], [0.0, 0.4]], np.float32))
    assert np.abs(a - b).max() > 0.1
    np.testing.assert_allclose([a[0], a[4]], [np.cos(np.pi * 0.4), np.sin(np.pi * 0.4)], atol=1e-6)
    np.testing.assert_allclose([b[0], b[4]], [1, 0], atol=1e-6)


def test_one_axis_and_an_odd_width_are_refused():
    with pytest.raises(ValueError, match="this scheme has 2 axes"):
        encoded(np.zeros(3, np.float32))
    with pytest.raises(ValueError, match="the width must be even, not 7"):
        posenc.bind(posenc.parse("sinusoidal_2d"), posenc.Dims(7, 1, 7, 4))
    with pytest.raises(ValueError, match="the width must be even, not 7"):
        posenc.embed(posenc.parse("sinusoidal_2d"), {"layer": {}, "heads": {}}, np.zeros((3, 7), np.float32))
