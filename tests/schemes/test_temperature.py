"""Temperatures: one number for each query, of the keys that it sees."""

import jax
import numpy as np

import posenc
from posenc import Dims

DIMS = Dims(width=8, heads=4, head=4, trained=8, key_heads=2)


def features(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_a_query_that_sees_nothing_stays_zero_with_zero_gradient():
    params = posenc.init(posenc.parse("ssmax"), jax.random.key(0), DIMS)
    q, k, v = features(3, 4, 4), features(3, 2, 4, seed=1), features(3, 2, 4, seed=2)
    segments = np.array([0, 1, 1])
    f = lambda params, q: posenc.attend(posenc.parse("ssmax"), params, q, k, v, segments=segments)  # noqa: E731
    np.testing.assert_array_equal(f(params, q)[0], 0)
    grads = jax.jit(jax.grad(lambda params, q: f(params, q).sum(), (0, 1)))(params, q)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(grads))
    np.testing.assert_array_equal(grads[1][0], 0)
