"""PaTH: reflections that tokens choose, where there are none, and within a window."""

import jax
import numpy as np
import pytest

import posenc
from tests.schemes.helpers import attend, made, tokens


@pytest.mark.ci
def test_features_of_nothing_have_a_finite_gradient():
    """A norm at 0."""
    scheme, params = made("path(forget='scaled')")
    q, k, v, x = tokens(5)
    run = lambda p, x: posenc.attend(scheme, p, q, k, v, x=x).sum()  # noqa: E731
    back = jax.jit(jax.grad(run, (0, 1)))(params, np.zeros_like(x))
    assert all(np.isfinite(a).all() for a in jax.tree.leaves(back))


@pytest.mark.ci
def test_a_window_leaves_the_path_within_it():
    scheme, params = made("path(kernel=1, forget='unscaled')")
    q, k, v, x = tokens(7)
    narrow = attend(scheme, params, q, k, v, x, mask=posenc.Window(2, 0))
    three = attend(scheme, params, q[-1:], k[4:], v[4:], x[-1:], key_x=x[4:], query_start=2)
    np.testing.assert_allclose(narrow[-1:], three, atol=1e-6)
