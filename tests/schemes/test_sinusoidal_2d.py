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


def test_one_axis_and_an_odd_width_are_refused():
    with pytest.raises(ValueError, match="2 axes"):
        encoded(np.zeros(3, np.float32))
    with pytest.raises(ValueError, match="width.* 7"):
        posenc.bind(posenc.parse("sinusoidal_2d"), posenc.Dims(7, 1, 7, 4))
    with pytest.raises(ValueError, match="width.* 7"):
        posenc.embed(posenc.parse("sinusoidal_2d"), {"layer": {}, "heads": {}}, np.zeros((3, 7), np.float32))
