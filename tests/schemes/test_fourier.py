"""Learned Fourier features: a bell of the distance at the start, of one axis or several, and real positions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from tests.schemes.helpers import made, tokens


def test_the_products_of_features_start_as_a_bell_of_the_distance_whose_width_is_gamma():
    for axes, gamma in ((1, 3.0), (2, 0.5)):
        frequency = np.asarray(made(f"fourier(axes={axes}, features=8192, gamma={gamma})")[1]["layer"]["frequency"])
        for distance in (0.2, 1.0, 2.0):
            apart = np.full(axes, gamma * distance / axes**0.5)
            product = np.cos(apart @ frequency).mean()  # [cos a; sin a] · [cos b; sin b] is cos(a - b)
            np.testing.assert_allclose(product, np.exp(-(distance**2) / 2), atol=0.05)


@pytest.mark.ci
def test_real_positions_are_served_and_have_gradients():
    scheme, params = made("fourier")
    x = jnp.asarray(tokens(5)[3])
    e = lambda at: posenc.embed(scheme, params, x, positions=at) - x  # noqa: E731
    at = jnp.array([0.5, -3.0, 7.25, 0.0, 1e4])
    slope = jax.jit(jax.grad(lambda at: (e(at) ** 2).sum()))(at)
    assert np.isfinite(slope).all() and (np.abs(slope) > 0).all()
    assert np.abs(e(at + 1e-3) - e(at)).max() < 0.1 and np.abs(e(at + 1) - e(at)).max() > 1e-2


def test_features_are_as_many_as_the_model_is_wide_and_even():
    assert posenc.bind(posenc.parse("fourier"), posenc.Dims(5, 1, 5, 8)).features == 6
