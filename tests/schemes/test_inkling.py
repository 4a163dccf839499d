"""Inkling: below its floor the temperature is one."""

import jax
import numpy as np

import posenc
from tests.schemes.helpers import attend, made, tokens


def loud(text, seed=0):
    """Profiles that are seen: at the start they are small."""
    scheme, params = made(text, seed=seed)
    return scheme, jax.tree.map(lambda a: a * 30, params)


def test_below_the_floor_and_before_zero_the_temperature_is_one_with_a_finite_gradient():
    scheme, params = loud("inkling(extent=4, strength=0.5, floor=100)")
    q, k, v, x = tokens(5)
    where = np.arange(5) - 50
    run = lambda p: (posenc.attend(scheme, p, q, k, v, x=x, positions=where) * v).sum()  # noqa: E731
    value, back = jax.jit(jax.value_and_grad(run))(params)
    assert np.isfinite(value) and all(np.isfinite(a).all() for a in jax.tree.leaves(back))
    plain = attend(made("inkling(extent=4, strength=0.0)")[0], params, q, k, v, x)
    np.testing.assert_allclose(attend(scheme, params, q, k, v, x, positions=where), plain, atol=1e-6)
