"""Decay feature by feature, beyond the few tokens of its oracle: blocks, strong gates, documents, caches and memory."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc.attention import kernels
from tests.contract.test_decoding import decode, stepper

LENGTH, DIMS = 100, posenc.Dims(width=6, heads=2, head=4, trained=16)
DOCUMENTS = np.repeat([0, 1, 2, 0, 2, 3], [3, 40, 20, 2, 20, 15]).astype(np.int32)


def drawn(strength, dtype=np.float64):
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(LENGTH, 2, 4)).astype(dtype) for _ in range(3))
    x = rng.normal(size=(LENGTH, 6)).astype(dtype)
    p = {"w": strength * rng.normal(size=(2, 4, 6)), "b": rng.normal(size=(2, 4))}
    return q, k, v, x, {"layer": {}, "heads": jax.tree.map(lambda a: jnp.asarray(a, dtype), p)}


def equation(q, k, v, x, params, segments, window=None):
    """Every pair by itself, with the logarithms of the gates between the two added up in float64."""
    p, out = params["heads"], np.zeros(v.shape)
    real, index = segments > 0, np.arange(LENGTH)
    for h in range(2):
        w, b = (np.asarray(p[name][h], float) for name in ("w", "b"))
        gates = -np.logaddexp(0, -(np.asarray(x, float) @ w.T + b))
        sums = np.cumsum(np.where(real[:, None], gates, 0), 0)
        fading = np.exp(np.minimum(sums[:, None] - sums[None, :], 0))
        s = np.einsum("in,jn,ijn->ij", q[:, h], k[:, h], fading) / 2
        seen = (index[:, None] >= index) & (segments[:, None] == segments) & real
        seen &= index[:, None] - index < (window or LENGTH)
        s = np.where(seen, s, -1e30)
        e = np.where(seen, np.exp(s - s.max(-1, keepdims=True)), 0)
        out[:, h] = e @ v[:, h] / np.maximum(e.sum(-1, keepdims=True), 1e-300)
    return out


@pytest.mark.parametrize("strength", [0.1, 3.0, 60.0])
@pytest.mark.parametrize("kernel", ["dense", "tiled", "rows"])
def test_every_kernel_is_the_equation_under_gates_of_any_strength(kernel, strength, x64, monkeypatch):
    monkeypatch.setattr(kernels, "block", lambda queries, keys: 24)
    q, k, v, x, params = drawn(strength)
    about = {"segments": DOCUMENTS, "kernel": kernel}
    run = lambda q, k, v, x: posenc.attend(posenc.parse("wall"), params, q, k, v, x=x, **about)  # noqa: E731
    np.testing.assert_allclose(jax.jit(run)(q, k, v, x), equation(q, k, v, x, params, DOCUMENTS), atol=1e-10)
    loss = jax.jit(lambda *a: (run(*a) ** 2).sum())
    grads = jax.jit(jax.grad(loss, (0, 1, 2, 3)))(q, k, v, x)
    assert all(jnp.isfinite(g).all() for g in grads)
    step = 1e-6 * np.random.default_rng(1).normal(size=x.shape)
    slope = (loss(q, k, v, x + step) - loss(q, k, v, x - step)) / 2
    np.testing.assert_allclose((grads[3] * step).sum(), slope, rtol=1e-4, atol=1e-9)


def test_float32_is_as_accurate_far_down_a_text():
    q, k, v, x, params = drawn(3.0, np.float32)
    run = jax.jit(functools.partial(posenc.attend, posenc.parse("wall"), segments=DOCUMENTS))
    out = run(params, q, k, v, x=x)
    np.testing.assert_allclose(out, equation(q, k, v, x, params, DOCUMENTS), atol=2e-4)


def test_a_ring_of_slots_gives_what_the_whole_window_gives():
    q, k, v, x, params = drawn(3.0, np.float32)
    scheme = posenc.parse("wall + window(9)")
    cache = posenc.Cache.empty(scheme, params, DIMS, batch=1, capacity=13, ring=True)
    out, _ = decode(stepper(scheme, params), cache, [a[None] for a in (q, k, v, x)], (5,))
    whole = equation(q, k, v, x, params, np.ones(LENGTH, int), window=9)
    np.testing.assert_allclose(out[0], whole, atol=2e-4)


def test_tiles_take_memory_that_grows_with_the_length():
    def held(length):
        dims = posenc.Dims(32, 1, 32, length)
        shape = jax.ShapeDtypeStruct((length, 1, 32), jnp.float32)
        x = jax.ShapeDtypeStruct((length, 32), jnp.float32)
        scheme = posenc.parse("wall")
        params = jax.eval_shape(lambda: posenc.init(scheme, jax.random.key(0), dims))
        loss = lambda p, q, k, v, x: posenc.attend(scheme, p, q, k, v, x=x, kernel="tiled").sum()  # noqa: E731
        grad = jax.jit(jax.grad(loss, (0, 1, 2, 3))).lower(params, shape, shape, shape, x).compile()
        return grad.memory_analysis().temp_size_in_bytes

    assert held(8192) < 2.3 * held(4096)


def test_halves_of_halves_and_far_keys_are_what_blocks_make(x64):
    """Queries that are the keys, a power of two of them, and keys before all queries, with their gradients."""
    from posenc.numerics.decay import _by_blocks, decayed

    rng = np.random.default_rng(0)
    q, k, w = jnp.asarray(rng.normal(size=(3, 64, 8)))
    sums, index = jnp.cumsum(-3 * jnp.abs(w), 0), jnp.arange(64)
    for queries, keys in ((slice(0, 64), slice(0, 64)), (slice(32, 64), slice(0, 32))):

        def total(f, q, k, sums, queries=queries, keys=keys):
            made = f(q[queries], k[keys], sums[queries], sums[keys], index[queries], index[keys])
            return (made * jnp.cos(jnp.arange(made.size).reshape(made.shape))).sum()

        (ours, pulled), (theirs, expected) = (
            jax.jit(jax.value_and_grad(functools.partial(total, f), (0, 1, 2)))(q, k, sums)
            for f in (decayed, _by_blocks)
        )
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), pulled, expected)
