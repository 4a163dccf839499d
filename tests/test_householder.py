"""Products of matrices I - β w wᵀ, against those matrices one after another in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.numerics.householder import correction

D = 6
ALIKE, NEAR, APART = 0.0, 0.1, 10.0  # how far each w is from one that all share


def path(n, spread, strength=2.0, seed=0):
    """Queries, keys and directions of n tokens, the strength of each, and a causal mask."""
    rng = np.random.default_rng(seed)
    q, k, w = rng.normal(size=(3, n, D))
    w = rng.normal(size=D) + spread * w
    return q, k, w / np.linalg.norm(w, axis=-1, keepdims=True), np.full(n, strength), np.tril(np.ones((n, n), bool))


def each_matrix(q, k, w, beta, visible):
    """q_i · k_j less q_i · H_i … H_{j+1} k_j; each query passes the matrices from its own token back to the key."""
    out = np.zeros(visible.shape)
    for i, query in enumerate(np.float64(q)):
        left = query.copy()
        for j in range(len(k) - 1, -1, -1):
            out[i, j] = (query - left) @ k[j]
            if visible[i, j]:
                left = (np.eye(D) - beta[j] * np.outer(w[j], w[j])) @ left
    return out


@pytest.mark.parametrize("spread", [ALIKE, NEAR, APART])
@pytest.mark.parametrize("n", [0, 1, 2, 16, 17, 50])
def test_it_is_one_matrix_after_another(n, spread, x64):
    given = path(n, spread)
    np.testing.assert_allclose(jax.jit(correction)(*given), each_matrix(*given), atol=1e-12)


@pytest.mark.parametrize(("spread", "error"), [(ALIKE, 5e-4), (NEAR, 5e-4), (APART, 2e-4)])
def test_long_paths_keep_their_digits_in_float32(spread, error):
    """A series of powers would overflow here."""
    *given, visible = path(257, spread)
    single = [np.float32(a) for a in given]
    np.testing.assert_allclose(jax.jit(correction)(*single, visible), each_matrix(*single, visible), atol=error)


def test_the_first_and_second_derivatives_are_those_of_the_matrices(x64):
    *given, visible = path(19, NEAR, 1.3)
    rng = np.random.default_rng(1)
    weight, steps = rng.normal(size=visible.shape), [rng.normal(size=a.shape) for a in given]
    along = lambda f: lambda t: (f(*(a + t * b for a, b in zip(given, steps, strict=True)), visible) * weight).sum()  # noqa: E731
    exact, ours = along(each_matrix), along(correction)
    first, both = jax.jit(jax.grad(ours)), jax.jit(lambda t: jax.jvp(jax.value_and_grad(ours), (t,), (1.0,))[1])
    slope, curvature = both(0.0)
    np.testing.assert_allclose(slope, (exact(1e-5) - exact(-1e-5)) / 2e-5, rtol=1e-6)
    np.testing.assert_allclose(first(0.0), slope, rtol=1e-12)
    np.testing.assert_allclose(curvature, (first(1e-5) - first(-1e-5)) / 2e-5, rtol=1e-6)


def test_a_batch_is_its_members_and_calls_no_library():
    """Two batches of LAPACK's triangular systems can wait for each other's threads for ever."""
    parts = [path(20, APART, seed=seed) for seed in range(3)]
    batch = [jnp.stack([jnp.asarray(a) for a in column]) for column in zip(*parts, strict=True)]
    run = jax.jit(jax.vmap(correction))
    np.testing.assert_allclose(run(*batch), [correction(*map(jnp.asarray, part)) for part in parts], atol=1e-5)
    assert "custom_call" not in run.trace(*batch).lower(lowering_platforms=("cpu",)).as_text()
