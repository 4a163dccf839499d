"""Sinusoids: what holds of the vectors themselves, in every form that is in use."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc import Dims
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


def test_a_bfloat16_model_adds_float32_sinusoids():
    """Rounded once, after the sum: position 257 is not position 256."""
    x = jnp.zeros((2, 8), jnp.bfloat16)
    ours = posenc.embed(posenc.parse("sinusoidal"), NONE, x, positions=np.array([256, 257]))
    np.testing.assert_array_equal(ours, encode("", np.array([256, 257])).astype(jnp.bfloat16))
    assert np.abs(np.diff(ours.astype(jnp.float32), axis=0)).max() > 0.5


def test_a_learned_scale_starts_at_one_over_the_root_of_the_width_and_is_shared_by_layers():
    dims = Dims(16, 2, 8, 10)
    scheme = posenc.parse("sinusoidal(learned_scale=True)")
    params = posenc.init(scheme, jax.random.key(0), dims)
    assert float(params["layer"]["scale"]) == 0.25 and "scale" in scheme.tied
    x = np.zeros((5, 16), np.float32)
    np.testing.assert_allclose(posenc.embed(scheme, params, x), encode("", np.arange(5), 16) / 4, rtol=1e-6)
    assert posenc.init(posenc.parse("sinusoidal"), jax.random.key(0), dims) == NONE
