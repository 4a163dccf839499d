"""Sinusoids: what holds of the vectors themselves, in every form that is in use."""

import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from tests.oracles import sinusoidal as oracle

FORMS = ["", "layout='halves'", "layout='halves', spacing='t2t'"]
NONE = {"layer": {}, "heads": {}}


def encode(settings, position, width=8, dtype=jnp.float32):
    return np.asarray(posenc.parse(f"sinusoidal({settings})").encode(jnp.asarray(position), width, dtype))


@pytest.mark.parametrize("settings", FORMS)
@pytest.mark.parametrize("width", [1, 2, 3, 7])
def test_narrow_and_odd_widths_are_as_in_the_equation(settings, width):
    scheme = posenc.parse(f"sinusoidal({settings})")
    position = np.array([0, 1, 5, 90])
    ours = posenc.embed(scheme, NONE, np.zeros((4, width), np.float32), positions=position)
    np.testing.assert_allclose(ours, oracle.embed(scheme, {}, np.zeros((4, width)), position), atol=1e-6)


def test_real_negative_and_far_positions_are_told_apart():
    position = np.float32([-3.5, 0.25, 0.5, 1e6, 1e6 + 1])
    e = encode("", position)
    true = oracle.embed(posenc.parse("sinusoidal"), {}, np.zeros((5, 8)), position.astype(float))
    np.testing.assert_allclose(e, true, atol=2e-6)
