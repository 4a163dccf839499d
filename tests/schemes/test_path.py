"""PaTH: reflections that tokens choose, what they are when all choose alike, and what FoX has to do with it."""

import jax
import jax.numpy as jnp
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
def test_a_forget_gate_that_is_not_scaled_is_fox_added():
    scheme, params = made("path(forget='unscaled')")
    params["heads"]["gate"] = params["heads"]["gate"] * 30
    both, without = posenc.parse("path + fox"), {n: a for n, a in params["heads"].items() if "gate" not in n}
    fox = {"layer": {}, "heads": {"w": params["heads"]["gate"], "b": params["heads"]["gate_bias"]}}
    q, k, v, x = tokens(7)
    ours = attend(scheme, params, q, k, v, x)
    chain = attend(both, (params | {"heads": without}, fox), q, k, v, x)
    np.testing.assert_allclose(ours, chain, atol=1e-6)
    scaled = attend(posenc.parse("path(forget='scaled')"), params, q, k, v, x)
    assert np.abs(scaled - ours).max() > 1e-3  # trap 13


@pytest.mark.ci
def test_a_window_leaves_the_path_within_it():
    scheme, params = made("path(kernel=1, forget='unscaled')")
    q, k, v, x = tokens(7)
    narrow = attend(scheme, params, q, k, v, x, mask=posenc.Window(2, 0))
    three = attend(scheme, params, q[-1:], k[4:], v[4:], x[-1:], key_x=x[4:], query_start=2)
    np.testing.assert_allclose(narrow[-1:], three, atol=1e-6)


@pytest.mark.ci
def test_long_paths_of_reflections_are_as_exact_as_short_ones(x64):
    """What is solved for is a query on its way, never longer than it was, so errors add up and do not grow."""
    scheme, params = made("path")
    params["heads"]["beta_bias"] = params["heads"]["beta_bias"] + 4
    exact = tokens(150, dtype=np.float64)
    single = [a.astype(np.float32) for a in exact]
    run = jax.jit(lambda p, q, k, v, x: posenc.attend(scheme, p, q, k, v, x=x))
    far = run(jax.tree.map(lambda a: a.astype(jnp.float64), params), *exact)
    near = run(jax.tree.map(lambda a: a.astype(jnp.float32), params), *single)
    np.testing.assert_allclose(near, far, atol=2e-5)
