"""VO-RoPE, PoPE and FoPE: other things that turn, and what turns them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc import Dims
from tests.schemes.helpers import attend, hook, made, tokens

DIMS = Dims(width=16, heads=4, head=4, trained=16)


def test_values_may_be_wider_than_keys_and_come_in_pairs():
    scheme, p = made("vo_rope", DIMS)
    q, k, v, _ = tokens(5)
    wide = np.concatenate([v, v[..., :2]], -1)
    assert attend(scheme, p, q, k, wide).shape == (5, 4, 6)
    with pytest.raises(ValueError, match="has 5"):
        attend(scheme, p, q, k, wide[..., :5])


def polar(delta, q, k, positions):
    scheme = posenc.parse("pope")
    p = {"delta": jnp.asarray(delta)}
    return hook(scheme, "query", p, q, positions) @ hook(scheme, "key", p, k, positions).T


def test_the_angle_of_a_key_stays_within_a_turn_and_learns_only_there():
    q, k = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    delta = np.array([0.5, 0.0, -2.0, -8.0], np.float32)
    kept = np.clip(delta, -2 * np.pi, 0)
    np.testing.assert_array_equal(polar(delta, q, k, np.arange(3)), polar(kept, q, k, np.arange(3)))
    slope = jax.grad(lambda a: (polar(a, q, k, np.arange(3)) * np.arange(9).reshape(3, 3)).sum())
    assert ((np.abs(slope(delta)) > 1e-4) == [False, True, True, False]).all()
    np.testing.assert_allclose(slope(delta)[1:3], slope(kept)[1:3], rtol=1e-5)  # whole at the bound, not one half


def fourier(text, head=16, heads=2, trained=64):
    dims = Dims(head * heads, heads, head, trained)
    scheme = posenc.bind(posenc.parse(text), dims)
    return scheme, jax.jit(lambda key: posenc.init(scheme, key, dims))(jax.random.key(0))


def test_frequencies_that_never_complete_a_turn_are_left_out():
    fitted = lambda text: posenc.bind(posenc.parse(text), Dims(16, 1, 16, 64))  # noqa: E731
    scheme = fitted("fope")
    frequency, pairs = scheme._series(16)
    np.testing.assert_allclose(frequency, 10000.0 ** (-np.arange(3) / 8))  # the fourth, 0.032, needs 199 tokens
    assert scheme.length == 64 and pairs == 3
    assert len(fitted("fope(length=199)")._series(16)[0]) == 4
    assert fitted("fope(length=100000)")._series(16)[1] == 4  # a quarter of the head at most
    kept, pairs = fitted("fope(zeros='kept')")._series(16)
    assert pairs == 8 and (kept[:3] > 0).all() and (kept[3:] == 0).all()


@pytest.mark.ci
def test_coefficients_scatter_around_ones_and_are_never_trained_unless_told_so():
    dims = Dims(2048, 16, 128, 4096)
    scheme = posenc.bind(posenc.parse("fope"), dims)
    c = np.asarray(posenc.init(scheme, jax.random.key(0), dims)["heads"]["cos"])
    n, pairs = c.shape[1:]
    assert pairs == 32 and n == 46  # so every second frequency has a 1
    ones = np.zeros((n, pairs))
    ones[np.arange(0, n, 2), np.arange(23)] = 1
    spread = (c - ones[None]).std()
    assert abs(spread / (0.3 * np.sqrt(2 / ((n + 16) * pairs))) - 1) < 0.02  # PyTorch's fans of [heads, n, pairs]
    np.testing.assert_allclose((c - ones[None]).mean(0), 0, atol=6 * spread / 4)
    x = np.random.default_rng(0).normal(size=(4, 16)).astype(np.float32)
    for text, learns in (("fope", False), ("fope(learned=True)", True)):
        scheme, p = fourier(text)
        grad = jax.grad(lambda p, s=scheme: (hook(s, "query", p, x, np.arange(4)) ** 2).sum())
        moved = [np.abs(g).max() > 0 for g in jax.tree.leaves(grad({n: a[0] for n, a in p["heads"].items()}))]
        assert moved == [learns] * 2 and scheme.frozen == (frozenset() if learns else {"cos", "sin", "both"})
