"""Orthogonal matrices, against series of float64 and what defines them, one at a time on a CPU."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.numerics.orthogonal import haar, skew, turns
from tests.oracles import algebraic as algebraic_oracle


def entries(n, seed=0, scale=1.0):
    return scale * jnp.asarray(np.random.default_rng(seed).normal(size=n * (n - 1) // 2))


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("scale", [1.0, 0.0])  # at 0 all eigenvalues are equal
def test_turns_are_the_exponential_and_have_its_derivative(n, scale, x64):
    places, rng = np.array([0.0, 1.0, -2.5, 0.3, 7.0]), np.random.default_rng(2)
    e, weight, along = np.asarray(entries(n, scale=scale)), rng.normal(size=(5, n, n)), rng.normal(size=5)
    step = rng.normal(size=e.shape)

    def series(t):
        """The weighted sum of the exponentials at t steps from here."""
        maps = [
            algebraic_oracle.exponential(p * np.asarray(skew(jnp.asarray(e + t * step), n))) for p in places + t * along
        ]
        return np.stack(maps), (np.stack(maps) * weight).sum()

    ours = jax.jit(lambda e, p: turns(skew(e, n), p))
    np.testing.assert_allclose(ours(e, places), series(0)[0], atol=1e-11)
    by_entries, by_places = jax.jit(jax.grad(lambda e, p: (ours(e, p) * weight).sum(), (0, 1)))(e, places)
    slope = (series(1e-5)[1] - series(-1e-5)[1]) / 2e-5
    np.testing.assert_allclose((by_entries * step).sum() + (by_places * along).sum(), slope, rtol=1e-7, atol=1e-7)


def test_turns_stay_orthogonal_far_away_and_there_have_finite_gradients():
    """Squarings of a series would leave the orthogonal matrices: their error grows with the position."""
    e, places = entries(6, scale=3.0).astype(jnp.float32), jnp.asarray([2.0**10, 2.0**20, -(2.0**20)])
    f = lambda e: turns(skew(e, 6), places)  # noqa: E731
    maps, gradient = jax.jit(lambda e: (f(e), jax.grad(lambda e: f(e).sum())(e)))(e)
    maps = np.asarray(maps)
    np.testing.assert_allclose(maps @ maps.swapaxes(1, 2), np.broadcast_to(np.eye(6), maps.shape), atol=1e-5)
    assert np.isfinite(gradient).all()


def test_a_random_rotation_is_the_orthogonal_factor_whose_triangle_has_a_positive_diagonal():
    normal = jax.random.normal(jax.random.key(3), (5, 6, 6))
    found = np.asarray(jax.jit(jax.vmap(haar))(normal), np.float64)
    np.testing.assert_allclose(found @ found.swapaxes(1, 2), np.broadcast_to(np.eye(6), found.shape), atol=1e-6)
    triangle = found.swapaxes(1, 2) @ np.asarray(normal, np.float64)
    np.testing.assert_allclose(triangle, np.triu(triangle), atol=1e-5)
    assert (triangle.diagonal(axis1=1, axis2=2) > 0).all()


@pytest.mark.parametrize("made", [haar, lambda a: turns(a - a.T, jnp.arange(2.0))], ids=["haar", "turns"])
def test_a_cpu_decomposes_one_matrix_at_a_time(made):
    """Two calls of LAPACK for several matrices can wait for each other's threads for ever, as layers would."""
    many = jax.vmap(jax.vmap(made))
    text = jax.jit(many).trace(jnp.ones((3, 4, 6, 6))).lower(lowering_platforms=("cpu",)).as_text()
    given = re.findall(r"custom_call @lapack_.*: \(tensor<([x\d]+)x[a-z]", text)
    assert given and set(given) == {"6x6"}
