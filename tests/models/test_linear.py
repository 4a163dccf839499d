"""The linear map and the norm of our models: values and written gradients against float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab.models.parts import linear, normalise


def drawn(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def gradients(x, w, dy):
    """dx and dW in float64, token by token."""
    x, w, dy = (a.astype(np.float64) for a in (x, w, dy))
    rows = zip(x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1]), strict=True)
    return dy @ w.T, sum(np.outer(a, b) for a, b in rows)


@pytest.mark.parametrize("tokens", [(), (7,), (3, 5), (2, 3, 4)], ids=str)
def test_its_gradient_is_that_of_the_product(tokens):
    x, w, dy = drawn(*tokens, 6), drawn(6, 4), drawn(*tokens, 4)
    y, back = jax.vjp(linear, x, w)
    np.testing.assert_allclose(y, x.astype(np.float64) @ w, atol=2e-6)
    for found, wanted in zip(back(dy), gradients(x, w, dy), strict=True):
        np.testing.assert_allclose(found, wanted, atol=5e-6)


@pytest.mark.ci
def test_lanes_may_be_mapped_and_weights_may_be_more_precise_than_tokens():
    x, w = jnp.asarray(drawn(2, 3, 5, 6), jnp.bfloat16), drawn(2, 6, 4)
    loss = lambda product, x, w: (product(x, w).astype(jnp.float32) ** 2).sum()  # noqa: E731
    ours = jax.vmap(jax.grad(lambda x, w: loss(linear, x, w), (0, 1)))(x, w)
    plain = jax.vmap(jax.grad(lambda x, w: loss(lambda x, w: x @ w.astype(x.dtype), x, w), (0, 1)))(x, w)
    for found, wanted in zip(ours, plain, strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(np.float32(found), np.float32(wanted), rtol=0.02, atol=0.1)


def plain_norm(x, scale):
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6) * scale


@pytest.mark.parametrize("tokens", [(), (7,), (2, 3)], ids=str)
def test_the_norm_and_its_gradient_are_those_of_its_formula(tokens):
    x, scale, dy = drawn(*tokens, 6), drawn(6), drawn(*tokens, 6)
    with jax.enable_x64(True):
        exact = x.astype(np.float64), scale.astype(np.float64).reshape(*[1] * len(tokens), 6)
        wanted, pull = jax.vjp(plain_norm, *exact)
        dx, dscale = pull(dy.astype(np.float64))
    y, back = jax.vjp(normalise, x, scale)
    np.testing.assert_allclose(y, wanted, atol=2e-6)
    for found, right in zip(back(dy), (dx, dscale.reshape(6)), strict=True):
        np.testing.assert_allclose(found, right, atol=1e-5)
    low = jax.vjp(normalise, jnp.asarray(x, jnp.bfloat16), scale)[1](jnp.asarray(dy, jnp.bfloat16))
    assert [a.dtype for a in low] == [jnp.bfloat16, jnp.float32]
