"""Sparse weights and an encoder's two triangles, by what they are known for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc.schemes.entmax import entmax


@pytest.mark.parametrize("alpha", [1.1, 1.5, 2.0])
@pytest.mark.parametrize("keys", [1, 7, 20000])
def test_rows_sum_to_one_however_long_and_flat(alpha, keys):
    for spread in (0.0, 0.01, 3.0):
        s = spread * jax.random.normal(jax.random.key(0), (2, keys))
        weights = np.asarray(entmax(alpha, s, s == s), float)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        raised = np.where(weights > 1e-6, weights, 1) ** (alpha - 1)
        tau = np.where(weights > 1e-6, (alpha - 1) * np.asarray(s) - raised, np.nan)
        assert (np.nanmax(tau, -1) - np.nanmin(tau, -1) < 1e-4).all() or (weights <= 1e-6).all()


def test_a_row_that_sees_nothing_is_zero_with_zero_gradient():
    seen = jnp.array([[True, True, False], [False, False, False]])
    f = lambda s: (entmax(1.5, s, seen) * jnp.arange(6.0).reshape(2, 3)).sum()  # noqa: E731
    s = jnp.array([[0.5, 0.1, 9.0], [1.0, 2.0, 3.0]])
    assert (entmax(1.5, s, seen)[1] == 0).all() and (jax.grad(f)(s)[1] == 0).all() and jax.grad(f)(s)[0, 2] == 0


def test_places_outside_the_plane_are_refused_and_a_class_token_has_none():
    scheme = posenc.parse("relative_2d(height=2, width=3, class_token=True)")
    scheme.check_positions({}, np.array([[-1, -1], [0, 2], [1, 0]]))
    for wrong, advice in (
        ([2, 0], "give a larger"),
        ([0, 3], "give a larger"),
        ([0, -1], "count rows and columns from 0"),
    ):
        with pytest.raises(ValueError, match=f"2 by 3; {advice}"):
            scheme.check_positions({}, np.array([wrong]))
    with pytest.raises(ValueError, match="outside the plane"):
        posenc.parse("relative_2d(height=2, width=3)").check_positions({}, np.array([[-1, 0]]))
